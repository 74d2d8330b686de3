-- Where does the host spend its own time: without the spans that lie inside on a thread? Warm-up included.
WITH inside AS (SELECT c.parent AS id, SUM(c.dur_ns) AS ns
    FROM spans c JOIN tracks t ON t.id = c.track
    WHERE c.parent IS NOT NULL AND t.kind = 'thread' GROUP BY c.parent)
SELECT s.name_text AS name, COUNT(*) AS count, SUM(s.dur_ns) AS total_ns,
    SUM(s.dur_ns - COALESCE(inside.ns, 0)) AS self_ns
FROM span s LEFT JOIN inside ON inside.id = s.id
WHERE s.track_kind = 'thread'
GROUP BY name
ORDER BY self_ns DESC, name;
