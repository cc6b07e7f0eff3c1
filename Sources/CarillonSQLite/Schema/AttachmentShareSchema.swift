/// Version 25: an incomplete upload counts its received bytes and a reservation. Before, it counted its whole length.
enum AttachmentShareSchema {
    static let changes = """
        CREATE INDEX attachment_unfinished ON attachment (app, allowance) WHERE NOT is_complete;
        CREATE TRIGGER attachment_charged AFTER UPDATE OF charged ON attachment WHEN OLD.charged <> NEW.charged BEGIN
            UPDATE attachment_total SET bytes = bytes + NEW.charged - OLD.charged
            WHERE app = NEW.app AND allowance IN ('', NEW.allowance);
        END;
        UPDATE attachment SET charged = max(65536, min(length, synced + 67108864)) WHERE NOT is_complete;
        """
}
