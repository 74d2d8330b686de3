-- Is the trace whole? NULL: it does not say.
SELECT (SELECT SUM(count) FROM losses) AS lost,
    (SELECT SUM(unplaced_spans + ring_lost) FROM devices) AS device_lost,
    (SELECT SUM(causality_violations) FROM devices) AS causality_violations,
    (SELECT MAX(max_error_ns) FROM devices) AS max_error_ns;
