-- How fast did the device's counter run between two anchors, and how exactly is that known?
SELECT device, host_ns, (ticks - LAG(ticks) OVER w) * 1e9 / (host_ns - LAG(host_ns) OVER w) AS rate_hz,
    (error_ns + LAG(error_ns) OVER w) * 1e6 / (host_ns - LAG(host_ns) OVER w) AS error_ppm
FROM anchors
WINDOW w AS (PARTITION BY device ORDER BY host_ns);
