/// Version 36 adds a table with the settings of apps, and the version of the registry. Settings of deleted apps are not moved.
enum AppDocumentSchema {
    static let changes = """
        -- version counts the changes of apps, keys, documents of apps, servers of apps, and what the server itself is.
        CREATE TABLE registry (
            serial INTEGER PRIMARY KEY CHECK (serial = 1),
            version INTEGER NOT NULL
        ) STRICT;

        -- kind and name are those of AppDocument.Key; version is that of the registry after the change that stored the row.
        CREATE TABLE app_document (
            app INTEGER NOT NULL REFERENCES app ON DELETE CASCADE,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            bytes BLOB NOT NULL,
            version INTEGER NOT NULL,
            set_at INTEGER NOT NULL,
            PRIMARY KEY (app, kind, name)
        ) STRICT;
        CREATE INDEX app_document_of_kind ON app_document (kind, app);
        CREATE INDEX app_document_realm ON app_document (bytes) WHERE kind = 'realm';

        -- The version of an app's item rules by which the subscriptions on closed items were ended.
        CREATE TABLE applied_item_rules (
            app INTEGER PRIMARY KEY REFERENCES app ON DELETE CASCADE,
            version INTEGER NOT NULL
        ) STRICT;

        INSERT INTO app_document (app, kind, name, bytes, version, set_at)
            SELECT app, 'item_rules', '', CAST(document AS BLOB), revision, set_at FROM item_rules
            WHERE app IN (SELECT serial FROM app WHERE ended_at IS NULL);
        INSERT INTO app_document (app, kind, name, bytes, version, set_at)
            SELECT app, 'parameter_rules', '', CAST(document AS BLOB), version, set_at FROM parameter_rules
            WHERE app IN (SELECT serial FROM app WHERE ended_at IS NULL);
        INSERT INTO app_document (app, kind, name, bytes, version, set_at)
            SELECT app, 'user_rules', '', sealed, 1, set_at FROM user_rules
            WHERE app IN (SELECT serial FROM app WHERE ended_at IS NULL);
        -- The text of a SealedDocument, a zero byte, and what is sealed.
        INSERT INTO app_document (app, kind, name, bytes, version, set_at)
            SELECT app, 'approval_hook', '', CAST(CAST(address AS BLOB) || x'00' || secret AS BLOB), 1, set_at FROM app_veto
            WHERE app IN (SELECT serial FROM app WHERE ended_at IS NULL);
        INSERT INTO app_document (app, kind, name, bytes, version, set_at)
            SELECT app, 'credential', environment, CAST(CAST(summary AS BLOB) || x'00' || sealed AS BLOB), revision, set_at
            FROM gateway_credential WHERE app IN (SELECT serial FROM app WHERE ended_at IS NULL);
        -- When texts and realms were set was not stored.
        INSERT INTO app_document (app, kind, name, bytes, version, set_at)
            SELECT app.serial, 'alert_text', '', CAST(app_alert.document AS BLOB), 1, app.created_at
            FROM app_alert JOIN app ON app.serial = app_alert.app WHERE app.ended_at IS NULL;
        INSERT INTO app_document (app, kind, name, bytes, version, set_at)
            SELECT serial, 'realm', '', CAST(realm AS BLOB), 1, created_at FROM app
            WHERE realm IS NOT NULL AND ended_at IS NULL;
        INSERT INTO applied_item_rules (app, version)
            SELECT app, revision FROM item_rules
            WHERE is_applied = 1 AND app IN (SELECT serial FROM app WHERE ended_at IS NULL);
        INSERT INTO registry (serial, version) SELECT 1, coalesce(max(version), 0) FROM app_document;

        DROP TABLE item_rules;
        DROP TABLE parameter_rules;
        DROP TABLE user_rules;
        DROP TABLE app_veto;
        DROP TABLE gateway_credential;
        DROP TABLE app_alert;
        DROP INDEX app_of_realm;
        ALTER TABLE app DROP COLUMN realm;
        """
}
