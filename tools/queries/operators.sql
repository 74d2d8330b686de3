-- Which operators take the device's time? Loads, stores and executions are no operators.
SELECT name_text AS name, COUNT(*) AS count, SUM(dur_ns) AS total_ns,
    ROUND(100.0 * SUM(dur_ns) / SUM(SUM(dur_ns)) OVER (), 2) AS share_pct
FROM span
WHERE kind = 'device' AND name_text NOT IN ('Execution', 'Load', 'Store') AND NOT warm_up
GROUP BY name_text
ORDER BY total_ns DESC, name;
