-- How long from submit to start, and how long does it run?
SELECT COUNT(*) AS count, SUM(start_ns - submit_ns) AS queue_total_ns, AVG(start_ns - submit_ns) AS queue_mean_ns,
    MAX(start_ns - submit_ns) AS queue_max_ns, SUM(end_ns - start_ns) AS execute_total_ns,
    AVG(end_ns - start_ns) AS execute_mean_ns, MAX(end_ns - start_ns) AS execute_max_ns
FROM submissions;
