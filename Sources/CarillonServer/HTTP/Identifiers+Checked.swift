package import CarillonCore
package import CarillonWire

// Reads identifiers in addresses and bodies. An invalid identifier causes a refusal that describes the valid form.

extension AppID {
    package static func checked(_ text: String) throws(Refusal) -> AppID {
        guard let id = AppID(text) else {
            throw Refusal(
                .fieldInvalid, "An app is named with 1–128 letters, digits, \".\", \"-\" and \"_\", such as com.example.app."
            )
        }
        return id
    }
}

extension KeyRole {
    package static func checked(_ text: String) throws(Refusal) -> KeyRole {
        guard let role = KeyRole(rawValue: text) else {
            throw Refusal(.fieldInvalid, "The role must be one of \(allCases.map(\.rawValue).joined(separator: ", ")).")
        }
        return role
    }
}

extension KeyID {
    package static func checked(_ text: String) throws(Refusal) -> KeyID {
        guard let id = KeyID(text) else {
            throw Refusal(.keyUnknown, "A key is named by the 16 hexadecimal digits in its second last part.")
        }
        return id
    }
}

extension DeviceID {
    package static func checked(_ text: String) throws(Refusal) -> DeviceID {
        guard let id = DeviceID(text) else {
            throw Refusal(.deviceUnknown, "A device is named by 32 hexadecimal digits.")
        }
        return id
    }
}

extension ChannelID {
    package static func checked(_ text: String) throws(Refusal) -> ChannelID {
        guard let id = ChannelID(text) else {
            throw Refusal(.fieldInvalid, "A channelID is a UUID with dashes, chosen by the device.")
        }
        return id
    }
}

extension PushEnvironment {
    package static func checked(_ text: String) throws(Refusal) -> PushEnvironment {
        guard let environment = PushEnvironment(rawValue: text) else {
            throw Refusal(
                .parameterInvalid, "An environment is one of \(allCases.map(\.rawValue).joined(separator: ", ")).")
        }
        return environment
    }
}

extension WakeMode {
    static func checked(_ text: String) throws(Refusal) -> WakeMode {
        guard let mode = WakeMode(rawValue: text) else {
            throw Refusal(.fieldInvalid, "The field \"wake\" can be: \(allCases.map(\.rawValue).joined(separator: ", ")).")
        }
        return mode
    }
}
