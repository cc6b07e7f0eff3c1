import CarillonBasics
import CarillonWire
import Testing

@testable import CarillonClient

/// The user of the install, and the work that waits for the user.
struct UserSessionTests {
    private typealias Base = ClientSessionTests

    private let ada = UserChange.signedIn("ada's token")

    private func registrations(_ actions: [SessionAction]) -> [ClientFrame.Register] {
        actions.compactMap { if case .send(.register(let frame)) = $0 { frame } else { nil } }
    }

    @Test
    func `a user's token is stored durably first, is sent once a connection exists, and is deleted when it was accepted`() {
        var session = ClientSession(.init(), restoring: Base.stored())
        let said = session.userSet(ada, at: Base.start)
        #expect(said == [.write(.saveUser(ada)), .notifySubscriptions(.paused)])
        _ = session.started(at: Base.start)
        _ = session.socketOpened(at: Base.start)
        let live = Base.receive(.hello(Base.hello), &session)
        #expect(live.contains(.reportUser(ada, Base.identity)))
        let again = session.reportUser(at: Base.start)
        #expect(again.isEmpty, "one is under way")
        let taken = session.userAccepted(ada, of: Base.identity, as: "ada", at: Base.start)
        #expect(
            taken == [
                .write(.saveAcceptedUser("ada")), .write(.saveUser(nil)), .notifyDevice([.userTaken]),
                .notifySubscriptions(.connected(version: 1)),
            ])
        #expect(session.user.pending == nil)
    }

    @Test func `no channel is opened before the server knows its user`() throws {
        var session = Base.live(Base.stored(.connecting))
        _ = session.userSet(ada, at: Base.start)
        let other = ChannelID(Bytes16(high: 1, low: 3))
        let asked = try session.connectRequested("other", as: other, wake: .alert, deadline: nil)
        #expect(registrations(asked).isEmpty && registrations(session.catchUp()).isEmpty)
        let taken = session.userAccepted(ada, of: Base.identity, as: "ada", at: Base.start)
        #expect(registrations(taken).map(\.name) == [Base.name, "other"])
        #expect(registrations(taken).map(\.wake) == [nil, "alert"])
    }

    @Test func `channels that wait for a user who is refused are opened for nobody`() throws {
        var session = Base.live(Base.stored(.connecting))
        _ = session.userSet(ada, at: Base.start)
        let error = PushError(.userRefused, "no")
        let refused = session.userRefused(ada, of: Base.identity, error, at: Base.start)
        #expect(refused.contains(.notifyDevice([.userRefused(error)])) && refused.contains(.write(.saveUser(nil))))
        #expect(registrations(refused).isEmpty && refused.contains(.deliver(.notifyError(code: 202), to: Base.name)))
        #expect(session.user.pending == nil)
        let stale = session.userRefused(ada, of: Base.identity, error, at: Base.start)
        #expect(stale.isEmpty)
    }

    @Test func `messages of ended channels are dropped with their user, but not for a new token of the same user`() {
        var stored = Base.stored(.closed)
        stored.acceptedUser = "ada"
        stored.buffers = [Base.name: BufferUse(messages: 1, bytes: 1, lastPosition: 1)]
        var session = Base.live(stored)
        _ = session.userSet(ada, at: Base.start)
        let same = session.userAccepted(ada, of: Base.identity, as: "ada", at: Base.start)
        #expect(!same.contains(.dropMessages(of: Base.name)) && session.messages.buffers[Base.name] != nil)
        #expect(!same.contains(.notifySubscriptions(.userChanged)), "firings of the same user stay")
        _ = session.userSet(.signedOut, at: Base.start)
        let out = session.userAccepted(.signedOut, of: Base.identity, as: nil, at: Base.start)
        #expect(out.contains(.notifySubscriptions(.userChanged)))
        #expect(out.contains(.write(.removeMessages(of: Base.name))) && out.contains(.dropMessages(of: Base.name)))
        #expect(session.messages.buffers[Base.name] == nil && session.user.accepted == nil)
    }

    @Test(arguments: [true, false])
    func `the connection is replaced with the user, and pending data is not accepted`(isLive: Bool) {
        var stored = Base.stored(.closed)
        stored.acceptedUser = "ada"
        var session = ClientSession(.init(), restoring: stored)
        _ = session.started(at: Base.start)
        _ = session.socketOpened(at: Base.start)
        if isLive { _ = Base.receive(.hello(Base.hello), &session) }
        let bob = UserChange.signedIn("bob's token")
        _ = session.userSet(ada, at: Base.start)
        let same = session.userAccepted(ada, of: Base.identity, as: "ada", at: Base.start)
        #expect(session.phase != .closing && !same.contains(.closeSocket(code: 1000)))
        _ = session.userSet(bob, at: Base.start)
        let other = session.userAccepted(bob, of: Base.identity, as: "bob", at: Base.start)
        #expect(session.phase == .closing && other.contains(.closeSocket(code: 1000)))
        let body =
            #"{"subscription":"00000000000000000000000000000001","item":"i","at":5,"notification":{"title":"t"}}"#
        let late = Base.receive(.fired(FiredFrame(version: "v", body: Array(body.utf8))), &session)
        #expect(late.isEmpty)
        _ = session.socketClosed(code: 1000, at: Base.start, random: 0)
        #expect(session.phase == .waiting(until: Base.start), "this is no failure")
    }

    @Test func `each report of the user has a number, and the number of the last one counts as accepted`() {
        var session = Base.live()
        #expect(session.user.numbers.lastSet == session.user.numbers.lastAccepted)
        let bob = UserChange.signedIn("bob's token")
        _ = session.userSet(ada, at: Base.start)
        _ = session.userSet(bob, at: Base.start)
        _ = session.userAccepted(ada, of: Base.identity, as: "ada", at: Base.start)
        #expect(session.user.numbers.lastSet == 2 && session.user.numbers.lastAccepted == 0)
        _ = session.userAccepted(bob, of: Base.identity, as: "bob", at: Base.start)
        #expect(session.user.numbers.lastAccepted == 2)
        _ = session.userSet(ada, at: Base.start)
        _ = session.userRefused(ada, of: Base.identity, PushError(.userRefused, "no"), at: Base.start)
        #expect(session.user.numbers.lastSet == 3 && session.user.numbers.lastAccepted == 2)
    }

    @Test func `a token of the same user is no other user, and a token that cannot be read may be`() {
        func token(_ claims: String) -> UserChange { .signedIn("e30.\(Base64URL.encode(Array(claims.utf8))).c2ln") }
        #expect(!token(#"{"sub":"ada"}"#).mayDiffer(from: "ada"))
        #expect(token(#"{"sub":"ada"}"#).mayDiffer(from: "bob"))
        #expect(token(#"{"sub":"ada"}"#).mayDiffer(from: nil))
        #expect(token(#"{"sub":1}"#).mayDiffer(from: "ada"))
        #expect(ada.mayDiffer(from: "ada"))
        #expect(UserChange.signedOut.mayDiffer(from: "ada") && !UserChange.signedOut.mayDiffer(from: nil))
    }

    @Test func `another run repeats the pending report of the earlier run`() {
        var session = Base.live()
        _ = session.userSet(ada, at: Base.start)
        _ = session.stopped()
        _ = session.started(at: Base.start)
        _ = session.socketOpened(at: Base.start)
        let live = Base.receive(.hello(Base.hello), &session)
        #expect(live.contains(.reportUser(ada, Base.identity)))
    }

    @Test func `a report that arrives during another one is sent after it`() {
        var session = Base.live()
        let first = session.userSet(ada, at: Base.start)
        #expect(first.contains(.reportUser(ada, Base.identity)))
        let second = session.userSet(.signedOut, at: Base.start)
        #expect(second == [.write(.saveUser(.signedOut)), .notifySubscriptions(.paused)])
        let answered = session.userAccepted(ada, of: Base.identity, as: "ada", at: Base.start)
        #expect(answered == [.write(.saveAcceptedUser("ada")), .reportUser(.signedOut, Base.identity)])
        #expect(session.user.pending == .signedOut)
    }

    @Test func `a report that cannot be sent waits, and is not sent before the server's hint`() throws {
        var session = Base.live()
        _ = session.userSet(ada, at: Base.start)
        _ = session.userReportFailed(retryAfter: .seconds(300), at: Base.start, random: 0)
        #expect(try #require(session.deadline) <= Base.start + .seconds(300))
        _ = session.received(.pong, answered: nil, at: Base.start + .seconds(299), random: 0)
        let early = session.timerFired(at: Base.start + .seconds(299))
        #expect(!early.contains(.reportUser(ada, Base.identity)))
        let later = session.timerFired(at: Base.start + .seconds(300))
        #expect(later.contains(.reportUser(ada, Base.identity)))
    }

    @Test func `a report for another device does not apply to this one`() {
        var session = Base.live()
        _ = session.userSet(ada, at: Base.start)
        let stranger = DeviceIdentity(device: "other", credential: "c", socket: "ws://host/")
        let actions = session.userAccepted(ada, of: stranger, as: "ada", at: Base.start)
        #expect(actions == [.reportUser(ada, Base.identity)] && session.user.pending == ada)
    }

    @Test func `signing out removes the pending reports`() {
        var session = Base.live()
        _ = session.userSet(ada, at: Base.start)
        let actions = session.signedOut(at: Base.start)
        #expect(actions.contains(.write(.saveUser(nil))) && session.user.pending == nil)
    }

    @Test func `messages that waited for the app are dropped with their user, and for no other error`() {
        for (code, isDropped) in [(ChannelErrorCode.userChanged, true), (500, false)] {
            var session = Base.live(Base.stored(.open))
            _ = Base.receive(.notification(Base.message("m")), &session)
            #expect(session.messages.buffers[Base.name]?.messages == 1)
            let event = ChannelEventFrame(channelID: Base.id.description, version: "v", event: .error(code: code))
            let actions = Base.receive(.channelEvent(event), &session)
            #expect(actions.contains(.write(.removeMessages(of: Base.name))) == isDropped)
            #expect(actions.contains(.dropMessages(of: Base.name)) == isDropped)
            #expect((session.messages.buffers[Base.name] == nil) == isDropped)
            #expect(actions.contains(.deliver(.notifyError(code: code), to: Base.name)))
            #expect(session.channels.withdrawals.isEmpty != isDropped)
        }
    }
}
