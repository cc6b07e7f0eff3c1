/// The tables of version 6: work of any kind is a row of one table, in a queue.
enum LeasedWorkSchema {
    static let changes = tables + kept + triggers

    private static let tables = """
        -- Work of one app and one kind with one host and port. on_trial, failures and rests_until are its standing, which
        -- the lanes of an app to a peer have in common. head_at is when the first of its work is ready, served_at when
        -- some was last begun. share is what work is looked for by: app, kind, and standing.
        CREATE TABLE work_lane (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            app INTEGER NOT NULL,
            kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 31),
            peer TEXT NOT NULL,
            host TEXT NOT NULL,
            on_trial INTEGER NOT NULL DEFAULT 1 CHECK (on_trial IN (0, 1)),
            failures INTEGER NOT NULL DEFAULT 0,
            rests_until INTEGER NOT NULL DEFAULT 0,
            served_at INTEGER NOT NULL DEFAULT 0,
            head_at INTEGER NOT NULL,
            size INTEGER NOT NULL DEFAULT 0,
            ready_at INTEGER NOT NULL GENERATED ALWAYS AS (max(head_at, rests_until)) VIRTUAL,
            share INTEGER NOT NULL GENERATED ALWAYS AS (app * 64 + kind * 2 + on_trial) VIRTUAL,
            UNIQUE (app, peer, kind)
        ) STRICT;
        CREATE INDEX work_lane_ready ON work_lane (share, ready_at);

        -- Work that is owed: kind says to which table the number in subject belongs. It is due at a moment, that was set at
        -- another, and held until a third while it is leased; fence counts the leases.
        CREATE TABLE leased_work (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            lane INTEGER NOT NULL REFERENCES work_lane,
            device INTEGER NOT NULL,
            kind INTEGER NOT NULL,
            subject INTEGER NOT NULL,
            due_at INTEGER NOT NULL,
            set_at INTEGER NOT NULL,
            held_until INTEGER NOT NULL DEFAULT 0,
            fence INTEGER NOT NULL DEFAULT 0,
            ready_at INTEGER NOT NULL GENERATED ALWAYS AS (max(due_at, held_until)) VIRTUAL,
            UNIQUE (kind, subject)
        ) STRICT;
        CREATE INDEX leased_work_ready ON leased_work (lane, ready_at);

        """

    /// Moves the rows. Serial numbers, leases and fences do not change.
    private static let kept = """
        INSERT INTO work_lane (serial, app, kind, peer, host, on_trial, failures, rests_until, served_at, head_at, size)
            SELECT serial, app, kind, peer, host, on_trial, failures, rests_until, served_at, head_at, size FROM call_lane;
        INSERT INTO leased_work (serial, lane, device, kind, subject, due_at, set_at, held_until, fence)
            SELECT serial, lane, device, watch IS NULL, coalesce(watch, callback), due_at, set_at, held_until, fence
            FROM outward_call;
        DELETE FROM sqlite_sequence WHERE name IN ('work_lane', 'leased_work');
        INSERT INTO sqlite_sequence (name, seq) SELECT 'work_lane', seq FROM sqlite_sequence WHERE name = 'call_lane';
        INSERT INTO sqlite_sequence (name, seq) SELECT 'leased_work', seq FROM sqlite_sequence WHERE name = 'outward_call';
        DROP TABLE outward_call;
        DROP TABLE call_lane;

        """

    private static let triggers = """
        -- A lane is there as long as work stands in it, and knows when the first of it is ready.
        CREATE TRIGGER leased_work_enters AFTER INSERT ON leased_work BEGIN
            UPDATE work_lane SET size = size + 1, head_at = min(head_at, new.ready_at) WHERE serial = new.lane;
        END;
        CREATE TRIGGER leased_work_changes AFTER UPDATE OF due_at, held_until ON leased_work BEGIN
            UPDATE work_lane SET head_at = (SELECT min(ready_at) FROM leased_work WHERE lane = new.lane)
                WHERE serial = new.lane;
        END;
        CREATE TRIGGER leased_work_moves AFTER UPDATE OF lane ON leased_work WHEN old.lane <> new.lane BEGIN
            UPDATE work_lane SET size = size + 1, head_at = min(head_at, new.ready_at) WHERE serial = new.lane;
            DELETE FROM work_lane WHERE serial = old.lane AND size = 1;
            UPDATE work_lane SET size = size - 1,
                head_at = (SELECT min(ready_at) FROM leased_work WHERE lane = old.lane)
                WHERE serial = old.lane;
        END;
        CREATE TRIGGER leased_work_leaves AFTER DELETE ON leased_work BEGIN
            DELETE FROM work_lane WHERE serial = old.lane AND size = 1;
            UPDATE work_lane SET size = size - 1,
                head_at = (SELECT min(ready_at) FROM leased_work WHERE lane = old.lane)
                WHERE serial = old.lane;
        END;

        -- What work is for takes it along.
        CREATE TRIGGER watch_takes_its_work AFTER DELETE ON watch BEGIN
            DELETE FROM leased_work WHERE kind = 0 AND subject = old.serial;
        END;
        CREATE TRIGGER disconnect_callback_takes_its_work AFTER DELETE ON disconnect_callback BEGIN
            DELETE FROM leased_work WHERE kind = 1 AND subject = old.serial;
        END;
        """
}
