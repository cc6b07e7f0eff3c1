import CarillonBasics
import CarillonCore
import CarillonWire

/// The JSON body of a call to an approval hook.
extension ApprovalQuestion {
    private var type: String {
        switch self {
        case .device(.registration): "device.register"
        case .device(.token): "device.token"
        case .subscription: "subscription.activate"
        }
    }

    func json(app: AppID, at now: Timestamp) -> JSONValue {
        [
            "type": .string(type), "timestamp": .string(Timestamp3339.text(now.milliseconds)),
            "data": .object([.init(name: "app", value: .string(app.text))] + data),
        ]
    }

    private var data: [JSONValue.Member] {
        switch self {
        case .device(.registration(let profile, let user, let isAnonymous)):
            Self.members(profile) + Self.texts([("user", user?.user?.text)]) + [
                .init(name: "isAnonymous", value: .bool(isAnonymous))
            ]
        case .device(.token(let device, let profile, let user)):
            Self.texts([("device", device.description), ("user", user?.text)]) + Self.members(profile)
        case .subscription(let question):
            Self.texts([
                ("device", question.device.description), ("user", question.user?.text),
                ("subscription", question.subscription?.description),
            ]) + [.init(name: "definition", value: question.definition.json)]
        }
    }

    private static func members(_ profile: DeviceProfile?) -> [JSONValue.Member] {
        texts([
            ("platform", profile?.address?.platform.rawValue), ("pushToken", profile?.address?.token.hexadecimal),
            ("environment", profile?.address?.environment.rawValue), ("appVersion", profile?.appVersion),
            ("locale", profile?.locale), ("timeZone", profile?.timeZone),
        ])
    }

    private static func texts(_ all: [(name: String, text: String?)]) -> [JSONValue.Member] {
        all.compactMap { name, text in text.map { .init(name: name, value: .string($0)) } }
    }
}
