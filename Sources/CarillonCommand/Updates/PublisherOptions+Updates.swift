import CarillonBasics

extension PublisherOptions {
    /// Returns the path with the app as a parameter, if one is named, and with the parameters that have a value.
    func path(_ path: String, _ parameters: [(String, String?)] = []) -> String {
        let all = ([("app", app)] + parameters).compactMap { name, value in
            value.map { "\(name)=\(APIClient.inQuery($0))" }
        }
        return all.isEmpty ? path : path + "?" + all.joined(separator: "&")
    }
}

extension JSONValue {
    /// Returns the text of a member; empty if the member is absent.
    func text(_ name: String) -> String {
        if case .string(let text)? = self[name] { text } else { "" }
    }

    func integer(_ name: String) -> Int64 {
        if case .integer(let number)? = self[name] { Int64(number) } else { 0 }
    }
}
