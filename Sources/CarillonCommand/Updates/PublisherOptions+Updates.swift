import CarillonBasics

extension PublisherOptions {
    /// With the app, where one is named.
    func path(_ path: String, _ parameters: [(String, String)] = []) -> String {
        let all = (app.map { [("app", $0)] } ?? []) + parameters
        guard !all.isEmpty else { return path }
        return path + "?" + all.map { "\($0)=\(APIClient.inQuery($1))" }.joined(separator: "&")
    }
}

extension JSONValue {
    /// Empty where there is none.
    func text(_ name: String) -> String {
        if case .string(let text)? = self[name] { text } else { "" }
    }

    func integer(_ name: String) -> Int64 {
        if case .integer(let number)? = self[name] { Int64(number) } else { 0 }
    }
}
