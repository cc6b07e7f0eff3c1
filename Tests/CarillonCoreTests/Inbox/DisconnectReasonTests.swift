import CarillonWire
import Testing

@testable import CarillonCore

struct DisconnectReasonTests {
    @Test func `an envelope that ends its channel contains the reason`() {
        #expect(DisconnectReason(.channelClosed) == .revoked)
        #expect(DisconnectReason(.channelError(code: 500)) == .revoked)
        #expect(DisconnectReason(.channelError(code: ChannelErrorCode.userChanged)) == .userChanged)
        #expect(DisconnectReason.userChanged.rawValue == "user_changed")
    }
}
