/// Adds to firings that wait for their pace whether they are of a distinct item.
enum DistinctFiringSchema {
    static let changes = """
        -- 1 of a firing that replaces no other in the inbox.
        ALTER TABLE held_firing ADD COLUMN is_distinct INTEGER NOT NULL DEFAULT 0;
        """
}
