/// Version 26 adds to completions whether the device received the update.
enum ReceptionSchema {
    static let changes = """
        ALTER TABLE completion ADD COLUMN is_received INTEGER NOT NULL DEFAULT 0;
        -- What was given once and waits was not received, nor was what was absorbed or what the device did not know.
        UPDATE completion SET is_received = 1
        WHERE attempt > 1 OR attempt = 1 AND state NOT IN (0, 11) AND absorbed_by IS NULL;

        -- What stands behind nothing of its order key any more may be given.
        UPDATE completion SET due_at = changed_at
        WHERE state = 0 AND attempt = 0 AND due_at IS NULL AND order_key NOT NULL
            AND NOT EXISTS (SELECT 1 FROM completion AS earlier INDEXED BY completion_order
                WHERE earlier.binding = completion.binding AND earlier.order_key = completion.order_key
                    AND earlier.order_key NOT NULL AND earlier.state < 4
                    AND (earlier.in_update, earlier.entry) < (completion.in_update, completion.entry));
        """
}
