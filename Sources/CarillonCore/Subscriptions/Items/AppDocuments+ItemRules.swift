import CarillonBasics

extension AppDocuments {
    /// Returns the rules of an app for its items, with the version of their document; 0 without a document.
    func itemRules(of app: AppSerial) async throws -> (rules: ItemRules, revision: Int64) {
        let read = try await value(of: AppDocument.Key(.itemRules, of: app)) { document -> ReadItemRules in
            guard let document else { return ReadItemRules(rules: ItemRules(), revision: 0) }
            let revision = document.version.rawValue
            guard let body = JSONValue(parsing: document.bytes) else {
                return ReadItemRules(rules: ItemRules(), revision: revision)
            }
            return ReadItemRules(rules: try ItemRules(body), revision: revision)
        }
        return (read.rules, read.revision)
    }
}

private struct ReadItemRules: Sendable {
    var rules: ItemRules
    var revision: Int64
}
