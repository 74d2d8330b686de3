-- How long does each PE wait between two executions? A negative gap is an overlap.
SELECT device, pe_index, COUNT(gap_ns) AS gaps, SUM(gap_ns) AS total_ns, MAX(gap_ns) AS max_ns
FROM (SELECT device, pe_index,
        start_ns - LAG(end_ns) OVER (PARTITION BY device, pe_index ORDER BY start_ns, execution) AS gap_ns
    FROM submissions)
WHERE gap_ns IS NOT NULL
GROUP BY device, pe_index;
