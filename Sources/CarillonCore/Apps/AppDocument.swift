/// A setting of an app, as the registry stores it. Only the feature of the setting reads the bytes.
package struct AppDocument: Equatable, Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case itemRules = "item_rules"
        case parameterRules = "parameter_rules"
        /// The rules by which users are authenticated, sealed.
        case userRules = "user_rules"
        /// The address of the app's approval hook, with the sealed secret that signs its requests.
        case approvalHook = "approval_hook"
        case alertText = "alert_text"
        /// The summary of push credentials for an environment, with the sealed push credentials.
        case credential
        /// The name of the realm. Apps of one realm share their users; stores compare the bytes to find them.
        case realm
    }

    /// Identifies a document.
    package struct Key: Hashable, Sendable {
        package var app: AppSerial
        package var kind: Kind
        /// The environment of push credentials; empty for other kinds.
        package var name: String

        package init(_ kind: Kind, of app: AppSerial, name: String = "") {
            self.app = app
            self.kind = kind
            self.name = name
        }
    }

    package var key: Key
    package var bytes: [UInt8]
    package var setAt: Timestamp
    /// The version of the registry that stored the document.
    package var version: RegistryVersion

    package init(key: Key, bytes: [UInt8], setAt: Timestamp, version: RegistryVersion) {
        self.key = key
        self.bytes = bytes
        self.setAt = setAt
        self.version = version
    }
}

/// Increases with each change of the registry.
package struct RegistryVersion: Hashable, Comparable, Sendable {
    package var rawValue: Int64

    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
