import CarillonBasics

extension AppDocuments {
    /// Returns the parameter rules of an app, with the version of their document; 0 without a document.
    func parameterRules(of app: AppSerial) async throws -> (rules: ParameterRules, version: Int64) {
        let read = try await value(of: AppDocument.Key(.parameterRules, of: app)) { document -> ReadParameterRules in
            guard let document else { return ReadParameterRules(rules: ParameterRules(), version: 0) }
            let version = document.version.rawValue
            guard let body = JSONValue(parsing: document.bytes) else {
                return ReadParameterRules(rules: ParameterRules(), version: version)
            }
            return ReadParameterRules(rules: try ParameterRules(body), version: version)
        }
        return (read.rules, read.version)
    }
}

private struct ReadParameterRules: Sendable {
    var rules: ParameterRules
    var version: Int64
}
