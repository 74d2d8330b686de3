-- How long were how many submissions in flight: submitted, and not at the end of their execution?
WITH
    steps AS (SELECT submit_ns AS t, 1 AS step FROM submissions UNION ALL SELECT end_ns, -1 FROM submissions),
    depths AS (SELECT SUM(step) OVER (ORDER BY t, step ROWS UNBOUNDED PRECEDING) AS depth,
        LEAD(t) OVER (ORDER BY t, step) - t AS ns FROM steps)
SELECT depth, SUM(ns) AS total_ns, ROUND(100.0 * SUM(ns) / SUM(SUM(ns)) OVER (), 2) AS share_pct
FROM depths
WHERE ns > 0
GROUP BY depth
ORDER BY depth;
