import CarillonBasics

extension AppDocuments {
    /// The rules of an app, with the version of their document; 0 without a document.
    struct ReadRules<Rules: Sendable>: Sendable {
        var rules: Rules
        var version: Int64
    }

    /// Returns the rules of a JSON document.
    ///
    /// - Parameters:
    ///   - empty: The rules of an app without a document, or with a document that is not JSON.
    ///   - make: Makes the rules from the content of the document.
    func rules<Rules: Sendable>(
        _ key: AppDocument.Key, orElse empty: Rules, _ make: (JSONValue) throws -> Rules
    ) async throws -> ReadRules<Rules> {
        try await value(of: key) { document -> ReadRules<Rules> in
            guard let document else { return ReadRules(rules: empty, version: 0) }
            let rules = try JSONValue(parsing: document.bytes).map(make)
            return ReadRules(rules: rules ?? empty, version: document.version.rawValue)
        }
    }
}
