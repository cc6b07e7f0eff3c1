extension AppDocuments {
    /// Returns the rules of an app for its items, with the version of their document; 0 without a document.
    func itemRules(of app: AppSerial) async throws -> (rules: ItemRules, revision: Int64) {
        let read = try await rules(AppDocument.Key(.itemRules, of: app), orElse: ItemRules()) { try ItemRules($0) }
        return (read.rules, read.version)
    }
}
