import CarillonWire

/// Why a channel ended.
package enum DisconnectReason: String, CaseIterable, Sendable {
    case unregistered
    case revoked
    case deviceDeleted = "device_deleted"
    case appDeleted = "app_deleted"
    case userChanged = "user_changed"

    /// Of a channel that an envelope ends.
    init(_ content: Envelope.Kind) {
        self = content == .channelError(code: ChannelErrorCode.userChanged) ? .userChanged : .revoked
    }
}
