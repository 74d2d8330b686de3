-- Was the queue empty in those gaps (the next was submitted only after the end of the last), or not?
SELECT CASE WHEN submit_ns > previous_ns THEN 'queue empty' ELSE 'queued' END AS class, COUNT(*) AS count,
    SUM(start_ns - previous_ns) AS gap_ns
FROM (SELECT *, LAG(end_ns) OVER (PARTITION BY device, pe_index ORDER BY start_ns, execution) AS previous_ns
    FROM submissions)
WHERE previous_ns IS NOT NULL
GROUP BY class
ORDER BY class;
