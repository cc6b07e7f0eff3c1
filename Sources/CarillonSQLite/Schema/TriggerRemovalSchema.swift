/// Version 38 removes all other triggers. The rules in CarillonCore and the tables that write the rows do their work.
enum TriggerRemovalSchema {
    static let changes = """
        DROP TRIGGER watch_takes_its_work;
        DROP TRIGGER disconnect_callback_takes_its_work;
        DROP TRIGGER subscription_item_deleted;
        DROP TRIGGER item_inserted;
        DROP TRIGGER item_deleted;
        DROP TRIGGER subscription_inserted;
        DROP TRIGGER subscription_deleted;
        DROP TRIGGER attachment_device_gone;
        DROP TRIGGER attachment_app_gone;
        DROP TRIGGER audience_update_deleted;
        DROP TRIGGER device_profile_followed;
        DROP TRIGGER device_profile_reason;
        DROP TRIGGER device_profile_resumed;
        DROP TRIGGER attachment_added;
        DROP TRIGGER attachment_charged;
        DROP TRIGGER attachment_removed;
        DROP TRIGGER leased_work_enters;
        DROP TRIGGER leased_work_changes;
        DROP TRIGGER leased_work_moves;
        DROP TRIGGER leased_work_leaves;
        """
}
