-- Which inferences took longest, and which span directly inside took most of it?
SELECT i.id, i.start_ns, i.dur_ns, c.name_text AS longest_child, c.dur_ns AS child_ns
FROM span i
LEFT JOIN span c ON c.id = (SELECT id FROM spans WHERE parent = i.id ORDER BY dur_ns DESC, id LIMIT 1)
WHERE i.kind = 'inference' AND NOT i.warm_up AND NOT i.unfinished
ORDER BY i.dur_ns DESC, i.id
LIMIT 10;
