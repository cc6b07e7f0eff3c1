/// Version 40 adds a table of numbers of rows and bytes, with a row for each home. It replaces columns and rows that all homes
/// change.
///
/// Existing numbers become rows of the writer that changes them: the home of node 1, which was the only one, and no home for
/// attachments.
enum CounterSchema {
    static let changes = """
        CREATE TABLE counter (
            -- 0: a number of the whole store.
            app INTEGER NOT NULL,
            -- A CounterName, or that of an allowance of attachments.
            name TEXT NOT NULL,
            -- The number of the node, or 0 for a writer that is no home.
            home INTEGER NOT NULL,
            value INTEGER NOT NULL,
            PRIMARY KEY (app, name, home)
        ) STRICT, WITHOUT ROWID;

        INSERT INTO counter SELECT 0, 'envelopes', 1, envelopes FROM inbox_total WHERE envelopes <> 0;
        INSERT INTO counter SELECT 0, 'envelope_bytes', 1, bytes FROM inbox_total WHERE bytes <> 0;
        DROP TABLE inbox_total;

        INSERT INTO counter SELECT serial, 'devices', 1, devices FROM app WHERE devices <> 0;
        INSERT INTO counter SELECT serial, 'items', 1, items FROM app WHERE items <> 0;
        INSERT INTO counter SELECT serial, 'subscriptions', 1, subscriptions FROM app WHERE subscriptions <> 0;
        ALTER TABLE app DROP COLUMN devices;
        ALTER TABLE app DROP COLUMN items;
        ALTER TABLE app DROP COLUMN subscriptions;

        INSERT INTO counter SELECT app, 'watches', 1, watches FROM watch_usage WHERE watches <> 0;
        INSERT INTO counter SELECT app, 'callbacks', 1, callbacks FROM watch_usage WHERE callbacks <> 0;
        DROP TABLE watch_usage;

        INSERT INTO counter SELECT app, 'attachment_bytes:' || allowance, 0, bytes FROM attachment_total WHERE bytes <> 0;
        DROP TABLE attachment_total;
        """
}
