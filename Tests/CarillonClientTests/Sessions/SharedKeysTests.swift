import CarillonMessages
import CarillonWire
import Testing

@testable import CarillonClient

struct SharedKeysTests {
    private static let keys = SubscriptionKeys()

    private func channel(_ state: ChannelState, id: ChannelID? = ClientSessionTests.id) -> ChannelMachine {
        ChannelMachine(state: state, channelID: id, endpoint: nil, lastErrorCode: nil, keys: Self.keys)
    }

    @Test(arguments: [ChannelState.connecting, .open, .disconnecting])
    func `the extension has the keys of a channel that is open or can be open again`(_ state: ChannelState) {
        var shared = SharedKeys()
        #expect(shared.change(for: [channel(state)]) == [ClientSessionTests.id: Self.keys])
    }

    @Test(arguments: [ChannelState.none, .closed, .error])
    func `the keys of a channel that has ended are removed`(_ state: ChannelState) {
        var shared = SharedKeys()
        _ = shared.change(for: [channel(.open)])
        #expect(shared.change(for: [channel(state)]) == [:])
    }

    @Test func `keys are written at the start, after a change and after a failure, and else not`() {
        var shared = SharedKeys()
        #expect(shared.change(for: [ChannelMachine]()) == [:])
        #expect(shared.change(for: [ChannelMachine]()) == nil)
        #expect(shared.change(for: [channel(.open)])?.count == 1)
        #expect(shared.change(for: [channel(.disconnecting)]) == nil)
        shared.reset()
        #expect(shared.change(for: [channel(.open)])?.count == 1)
    }

    @Test func `a channel without an id or without keys has no subscription`() {
        var shared = SharedKeys()
        let plain = ChannelMachine(state: .open, channelID: ClientSessionTests.id, endpoint: nil, lastErrorCode: nil)
        #expect(shared.change(for: [channel(.open, id: nil), plain]) == [:])
    }
}
