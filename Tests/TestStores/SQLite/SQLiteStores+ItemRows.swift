package import CarillonCore

extension SQLiteStores {
    package func setItemCount(_ count: Int, in store: any Store) async throws {
        try await run(Self.setting("items", to: "\(count)"), in: store)
    }

    package func setSubscriptionCount(_ count: Int, in store: any Store) async throws {
        try await run(Self.setting("subscriptions", to: "\(count)"), in: store)
    }

    package func ageItems(in store: any Store) async throws { try await run("UPDATE item SET updated_at = 0", in: store) }

    package func loseItems(in store: any Store) async throws {
        try await run("DELETE FROM item; \(Self.setting("items", to: "0"))", in: store)
    }

    package func loseItemsAfterUpdate(counting count: Int, in store: any Store) async throws {
        try await run(
            """
            CREATE TRIGGER lose_items AFTER UPDATE ON item BEGIN
                DELETE FROM item;
                \(Self.setting("items", to: "\(count)"))
            END
            """, in: store)
    }

    package func replaceRemovedItems(in store: any Store) async throws {
        try await run(
            """
            CREATE TRIGGER replace_removed AFTER DELETE ON item BEGIN
                INSERT INTO item (app, name, mode, fields, updated_at, version)
                VALUES (old.app, old.name, 0, x'ff', 0, 1);
                \(Self.adding(1, to: "items", of: "old.app"))
            END
            """, in: store)
    }

    package func stopReplacingRemovedItems(in store: any Store) async throws {
        try await run(
            "DROP TRIGGER replace_removed; DELETE FROM item; \(Self.setting("items", to: "0"))", in: store)
    }

    package func changeRules(afterEnding count: Int, in store: any Store) async throws {
        try await run(
            """
            CREATE TRIGGER change_rules AFTER UPDATE OF status ON subscription
                WHEN (SELECT count(*) FROM subscription WHERE status = 2) = \(count)
            BEGIN UPDATE app_document SET version = version + 1 WHERE kind = 'item_rules'; END
            """, in: store)
    }
}
