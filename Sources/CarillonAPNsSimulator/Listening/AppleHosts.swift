/// The names of the real hosts, for clients whose addresses cannot be changed but whose name resolution can.
enum AppleHosts {
    static let all = [
        "api.sandbox.push.apple.com", "api.development.push.apple.com", "api.push.apple.com",
        "api-manage-broadcast.sandbox.push.apple.com", "api-manage-broadcast.push.apple.com",
    ]

    /// Returns the environment of the host name in `:authority`; nil if it is none of these names.
    static func environment(of authority: String) -> Environment? {
        guard authority.contains(".push.apple.com") else { return nil }
        let host = authority.prefix { $0 != ":" }
        guard all.contains(String(host)) else { return nil }
        return host.contains(".sandbox.") || host.contains(".development.") ? .sandbox : .production
    }
}
