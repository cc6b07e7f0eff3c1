import CarillonWire

/// The reason why a channel ended.
package enum DisconnectReason: String, CaseIterable, Sendable {
    case unregistered
    case revoked
    case deviceDeleted = "device_deleted"
    case appDeleted = "app_deleted"
    case userChanged = "user_changed"

    /// Returns the reason for a channel that ends with an envelope.
    init(_ content: Envelope.Kind) {
        self = content == .channelError(code: ChannelErrorCode.userChanged) ? .userChanged : .revoked
    }
}
