extension RelativePath {
    /// Returns the name of a sent file, before the name is checked.
    ///
    /// - Parameters:
    ///   - path: The path of the file. The name is a relative path itself, or the last component of an absolute path.
    ///   - name: The name that the app set; nil if the app set no name.
    static func nameText(of path: String, named name: String? = nil) -> String {
        if let name { return withoutDots(name) }
        let scalars = path.unicodeScalars
        guard scalars.first == "/" else { return withoutDots(path) }
        return scalars.split(separator: "/").map { String($0) }.last { $0 != "." } ?? ""
    }

    private static func withoutDots(_ text: String) -> String {
        let parts = text.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false).map { String($0) }
        return parts.filter { $0 != "." }.joined(separator: "/")
    }
}
