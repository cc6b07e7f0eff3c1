/// Adds to the rules for items whether the subscriptions on closed items have been ended.
enum AppliedRulesSchema {
    static let changes = """
        -- Counts how often the rules were set.
        ALTER TABLE item_rules ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
        -- 0 until the subscriptions on closed items have been ended.
        ALTER TABLE item_rules ADD COLUMN is_applied INTEGER NOT NULL DEFAULT 1;
        CREATE INDEX item_rules_unapplied ON item_rules (app) WHERE is_applied = 0;
        """
}
