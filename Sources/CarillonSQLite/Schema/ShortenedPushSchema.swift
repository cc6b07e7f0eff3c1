/// Adds to pushes whether their texts are shortened.
enum ShortenedPushSchema {
    static let changes = """
        -- 1 of an alert whose texts are shortened so that its payload fits.
        ALTER TABLE push ADD COLUMN is_shortened INTEGER NOT NULL DEFAULT 0;
        """
}
