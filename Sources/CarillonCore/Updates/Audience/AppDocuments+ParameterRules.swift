extension AppDocuments {
    /// Returns the parameter rules of an app, with the version of their document; 0 without a document.
    func parameterRules(of app: AppSerial) async throws -> (rules: ParameterRules, version: Int64) {
        let key = AppDocument.Key(.parameterRules, of: app)
        let read = try await rules(key, orElse: ParameterRules()) { try ParameterRules($0) }
        return (read.rules, read.version)
    }
}
