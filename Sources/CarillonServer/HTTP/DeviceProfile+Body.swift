import CarillonBasics
import CarillonCore
import CarillonWire

/// Reads the description of a device from JSON: complete, or as a merge patch (RFC 7396). In a patch, null removes a member, and
/// absent members are kept.
extension DeviceProfile {
    static let memberNames: Set = [
        "platform", "pushToken", "previousToken", "environment", "appVersion", "locale", "timeZone", "parameters",
        "revision",
    ]

    /// - Parameter body: An object without unknown members.
    init(_ body: JSONValue) throws(Refusal) {
        self.init()
        try merge(body)
    }

    mutating func merge(_ patch: JSONValue) throws(Refusal) {
        try mergeAddress(patch)
        appVersion = try Self.text("appVersion", in: patch, otherwise: appVersion)
        locale = try Self.text("locale", in: patch, otherwise: locale)
        timeZone = try Self.text("timeZone", in: patch, otherwise: timeZone)
        switch patch["parameters"] {
        case nil: break
        case .null: parameters = .none
        case let value?: parameters = try parameters.merging(value)
        }
        // A revision identifies the whole description. A change without a revision therefore removes the revision.
        if !patch.names.isDisjoint(with: Self.memberNames) {
            revision = try Self.text("revision", in: patch, otherwise: nil)
        }
        try check()
    }

    private mutating func mergeAddress(_ patch: JSONValue) throws(Refusal) {
        // The device's earlier token. The credential identifies the device, and a token proves nothing.
        if let earlier = try Self.text("previousToken", in: patch, otherwise: nil) {
            _ = try PushToken(hexadecimal: earlier)
        }
        let names = ["platform", "pushToken", "environment"]
        guard names.contains(where: { patch[$0] != nil }) else { return }
        let current = service
        let platformName = try Self.text("platform", in: patch, otherwise: current?.platform.rawValue)
        let token = try Self.text("pushToken", in: patch, otherwise: address?.token.hexadecimal)
        let environmentName = try Self.text("environment", in: patch, otherwise: current?.environment.rawValue)
        let environment: PushEnvironment = try Self.known(
            environmentName ?? PushEnvironment.production.rawValue, "environment")
        let platform: PushPlatform? = if let platformName { try Self.known(platformName, "platform") } else { nil }
        if let token {
            guard let platform else { throw Refusal(.fieldMissing, "The field \"platform\" is missing.") }
            address = Address(platform: platform, token: try PushToken(hexadecimal: token), environment: environment)
            return
        }
        // A platform or an environment requires a token, except where it replaces that of the device's last token.
        guard patch["pushToken"] == .null || current != nil || (platformName == nil && environmentName == nil) else {
            throw Refusal(
                .fieldMissing, "The field \"pushToken\" is missing: a platform or an environment is that of a token.")
        }
        address = nil
        formerService = platform.map { Service(platform: $0, environment: environment) }
    }

    /// Returns nil for null.
    private static func text(
        _ name: String, in patch: JSONValue, otherwise current: String?
    ) throws(Refusal) -> String? {
        switch patch[name] {
        case nil: return current
        case .null: return nil
        case .string(let text): return text
        default: throw Refusal(.fieldInvalid, "The field \"\(name)\" must be a text.")
        }
    }

    private static func known<Value: RawRepresentable & CaseIterable>(
        _ text: String, _ name: String
    ) throws(Refusal) -> Value where Value.RawValue == String {
        guard let value = Value(rawValue: text) else {
            let known = Value.allCases.map(\.rawValue).joined(separator: ", ")
            throw Refusal(.fieldInvalid, "The field \"\(name)\" can be: \(known).")
        }
        return value
    }
}
