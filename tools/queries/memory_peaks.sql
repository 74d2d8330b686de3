-- What is the peak of each memory pool, when was it, and who made it?
SELECT device, MAX(used_bytes) AS peak_bytes, ts_ns, allocated_bytes, tag
FROM (SELECT * FROM memory WHERE NOT warm_up ORDER BY ts_ns)
GROUP BY device;
