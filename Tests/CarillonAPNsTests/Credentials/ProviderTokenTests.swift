import Crypto
import Testing

@testable import CarillonAPNs

/// When a provider token is signed, which connections can use it, and which clients use the same one.
struct ProviderTokenTests {
    private static let start = Moment(nanoseconds: 0)

    @Test func `a token is renewed at fifty minutes, and not before`() {
        var machine = ProviderTokenMachine()
        #expect(machine.wanted(Self.start, wall: 1000) == .sign(generation: 1))
        machine.signed(Self.start, wall: 1000)
        for minutes in [0, 20, 49] {
            #expect(machine.wanted(Self.start + .seconds(minutes * 60), wall: 1000 + Int64(minutes) * 60) == .keep)
        }
        #expect(machine.wanted(Self.start + .seconds(50 * 60), wall: 1000 + 3000) == .sign(generation: 2))
    }

    @Test func `a young token that is refused is replaced at once, a minute apart, and twice an hour`() {
        var machine = ProviderTokenMachine()
        func at(_ seconds: Int) -> Moment { Self.start + .seconds(seconds) }
        machine.signed(at(0), wall: 0)
        machine.refused(generation: 1, at(1))
        #expect(machine.wanted(at(1), wall: 1) == .sign(generation: 2, isForFreshConnections: true))
        machine.signed(at(1), wall: 1)
        machine.refused(generation: 1, at(70))
        #expect(machine.wanted(at(70), wall: 70) == .keep)
        machine.refused(generation: 2, at(60))
        #expect(machine.wanted(at(70), wall: 70) == .keep)
        machine.refused(generation: 2, at(61))
        #expect(machine.wanted(at(61), wall: 61) == .sign(generation: 3, isForFreshConnections: true))
        machine.signed(at(61), wall: 61)
        for seconds in stride(from: 62, to: 1261, by: 30) {
            machine.refused(generation: 3, at(seconds))
            #expect(machine.wanted(at(seconds), wall: Int64(seconds)) == .keep)
        }
        machine.refused(generation: 3, at(1260))
        #expect(machine.wanted(at(1260), wall: 1260) == .keep)
        machine.signed(at(3061), wall: 3061)
        machine.refused(generation: 4, at(3600))
        #expect(machine.wanted(at(3600), wall: 3600) == .keep)
        machine.refused(generation: 4, at(3601))
        #expect(machine.wanted(at(3601), wall: 3601) == .sign(generation: 5, isForFreshConnections: true))
    }

    @Test func `a token that is refused after twenty minutes is replaced each time, and is no correction`() {
        var machine = ProviderTokenMachine()
        func at(_ seconds: Int) -> Moment { Self.start + .seconds(seconds) }
        machine.signed(at(0), wall: 0)
        // The service calls each token expired after 20 minutes, because the clock is 40 minutes slow.
        for generation in 1...6 {
            let seconds = generation * 1200
            machine.refused(generation: generation, at(seconds))
            #expect(
                machine.wanted(at(seconds), wall: Int64(seconds))
                    == .sign(generation: generation + 1, isForFreshConnections: true))
            machine.signed(at(seconds), wall: Int64(seconds))
        }
        // All corrections of young tokens are left.
        for (generation, seconds) in [(7, 7201), (8, 7261)] {
            machine.refused(generation: generation, at(seconds))
            #expect(
                machine.wanted(at(seconds), wall: Int64(seconds))
                    == .sign(generation: generation + 1, isForFreshConnections: true))
            machine.signed(at(seconds), wall: Int64(seconds))
        }
        machine.refused(generation: 9, at(7321))
        #expect(machine.wanted(at(7321), wall: 7321) == .keep)
    }

    @Test func `a wall clock that is set every twenty minutes renews the token each time`() {
        var machine = ProviderTokenMachine()
        machine.signed(Self.start, wall: 0)
        for generation in 1...6 {
            let now = Self.start + .seconds(generation * 1200)
            let wall = Int64(generation) * 2400
            #expect(machine.wanted(now, wall: wall) == .sign(generation: generation + 1, isForFreshConnections: true))
            machine.signed(now, wall: wall)
        }
        #expect(
            machine.wanted(Self.start + .seconds(7201), wall: 20_000)
                == .sign(generation: 8, isForFreshConnections: true))
    }

    @Test func `a wall clock that was set renews the token at once, at most three times in an hour`() {
        var machine = ProviderTokenMachine()
        var wall: Int64 = 100_000
        machine.signed(Self.start, wall: wall)
        for step in [-120, 120] as [Int64] {
            #expect(machine.wanted(Self.start + .seconds(60), wall: wall + 60 + step) == .keep)
        }
        for step in [-121, 121] as [Int64] {
            #expect(
                machine.wanted(Self.start + .seconds(60), wall: wall + 60 + step)
                    == .sign(generation: 2, isForFreshConnections: true))
        }
        for generation in 2...4 {
            wall += 1000
            let now = Self.start + .seconds(generation)
            #expect(machine.wanted(now, wall: wall) == .sign(generation: generation, isForFreshConnections: true))
            machine.signed(now, wall: wall)
        }
        #expect(machine.wanted(Self.start + .seconds(5), wall: wall + 1000) == .keep)
        machine.refused(generation: 4, Self.start + .seconds(600))
        #expect(machine.wanted(Self.start + .seconds(600), wall: wall + 596) == .keep)
        // A token that is 20 minutes old is replaced all the same.
        #expect(machine.wanted(Self.start + .seconds(1203), wall: wall) == .keep)
        #expect(
            machine.wanted(Self.start + .seconds(1204), wall: wall) == .sign(generation: 5, isForFreshConnections: true))
        #expect(machine.wanted(Self.start + .seconds(3005), wall: wall + 3001) == .sign(generation: 5))
        machine.signed(Self.start + .seconds(3005), wall: wall + 3001)
        #expect(machine.wanted(Self.start + .seconds(3601), wall: wall) == .keep)
        #expect(
            machine.wanted(Self.start + .seconds(3602), wall: wall) == .sign(generation: 6, isForFreshConnections: true))
    }

    @Test func `a clock that is set right helps after the service refused two tokens`() {
        var machine = ProviderTokenMachine()
        machine.signed(Self.start, wall: 0)
        for (generation, seconds) in [(1, 0), (2, 60)] {
            machine.refused(generation: generation, Self.start + .seconds(seconds))
            machine.signed(Self.start + .seconds(seconds), wall: Int64(seconds))
        }
        #expect(machine.generation == 3)
        #expect(
            machine.wanted(Self.start + .seconds(70), wall: 7270) == .sign(generation: 4, isForFreshConnections: true))
    }

    @Test func `a connection carries a second token twenty minutes after its first push with the first`() {
        let (first, second) = (ProviderToken(bearer: "1", generation: 1), ProviderToken(bearer: "2", generation: 2))
        var history = TokenHistory()
        #expect(history.mayCarry(first, Self.start))
        history.carried(first, Self.start)
        // The time counts from the first push, and not from the last.
        history.carried(first, Self.start + .seconds(1199))
        #expect(history.mayCarry(first, Self.start + .seconds(1199)))
        #expect(!history.mayCarry(second, Self.start + .seconds(1199)))
        #expect(history.mayCarry(second, Self.start + TokenHistory.leastUse))
        #expect(TokenHistory.leastUse >= .seconds(1200))
        history.carried(second, Self.start + .seconds(1800))
        let third = ProviderToken(bearer: "3", generation: 3)
        #expect(!history.mayCarry(third, Self.start + .seconds(2999)))
        #expect(history.mayCarry(third, Self.start + .seconds(1800) + TokenHistory.leastUse))
    }

    @Test func `a connection remembers the newest token that the service took`() {
        let (first, second) = (ProviderToken(bearer: "1", generation: 1), ProviderToken(bearer: "2", generation: 2))
        var history = TokenHistory()
        history.carried(first, Self.start)
        #expect(!history.isTaken(first))
        history.wasTaken(first)
        history.carried(second, Self.start + .seconds(1800))
        #expect(history.isTaken(first))
        #expect(!history.isTaken(second))
        history.wasTaken(second)
        #expect(history.isTaken(second))
    }

    @Test func `a token for fresh connections is for no connection that carried another`() {
        let token = ProviderToken(bearer: "2", generation: 2, isForFreshConnections: true)
        var history = TokenHistory()
        #expect(history.mayCarry(token, Self.start))
        history.carried(ProviderToken(bearer: "1", generation: 1), Self.start)
        #expect(!history.mayCarry(token, Self.start + .seconds(86_400)))
        history = TokenHistory()
        history.carried(token, Self.start)
        #expect(history.mayCarry(token, Self.start))
    }

    @Test func `all connections use one token`() throws {
        let clock = ManualTime()
        let key = try APNsTokenKey(pem: Samples.keyPEM, keyID: "ABCDEFGHIJ", teamID: "KLMNOPQRST")
        let source = ProviderTokenSource(key: key, time: clock.source)
        let first = try source.current(clock.source.now())
        #expect(first.isNew)
        let again = try source.current(clock.source.now())
        #expect(again.token === first.token && !again.isNew)
        clock.advance(.seconds(49 * 60))
        #expect(try source.current(clock.source.now()).token === first.token)
        clock.advance(.seconds(60))
        let second = try source.current(clock.source.now())
        #expect(second.token !== first.token && second.isNew)
        #expect(!second.token.isForFreshConnections)
        #expect(source.isCurrent(second.token, clock.source.now()))
        #expect(!source.isCurrent(first.token, clock.source.now()))
        #expect(source.refused(first.token, clock.source.now()))
        #expect(source.refused(second.token, clock.source.now()))
        #expect(!source.isCurrent(second.token, clock.source.now()))
        let third = try source.current(clock.source.now()).token
        #expect(third.isForFreshConnections)
        #expect(!source.refused(third, clock.source.now()))
    }

    @Test func `clients with the same key, team and clock use one source`() throws {
        let clock = ManualTime().source
        func key(_ keyID: String = "ABCDEFGHIJ", _ teamID: String = "KLMNOPQRST") throws -> APNsTokenKey {
            try APNsTokenKey(pem: Samples.keyPEM, keyID: keyID, teamID: teamID)
        }
        let source = ProviderTokenSource.shared(for: try key(), time: clock)
        let same = ProviderTokenSource.shared(for: try key(), time: clock)
        #expect(same === source)
        let others = [
            ProviderTokenSource.shared(for: try key("ZZZZZZZZZZ"), time: clock),
            ProviderTokenSource.shared(for: try key("ABCDEFGHIJ", "ZZZZZZZZZZ"), time: clock),
            ProviderTokenSource.shared(for: try key(), time: ManualTime().source),
        ]
        #expect(others.allSatisfy { $0 !== source })
    }

    @Test func `another key with the same ID has a source of its own`() throws {
        let clock = ManualTime().source
        func source(_ pem: String) throws -> ProviderTokenSource {
            let key = try APNsTokenKey(pem: pem, keyID: "SAMEKEYID1", teamID: "KLMNOPQRST")
            return ProviderTokenSource.shared(for: key, time: clock)
        }
        let former = try source(Samples.keyPEM)
        let present = try source(P256.Signing.PrivateKey().pemRepresentation)
        #expect(present !== former)
    }

    @Test func `a token outlives its last client until it is fifty minutes old`() throws {
        final class Watched {
            weak var source: ProviderTokenSource?
        }
        let clock = ManualTime()
        let lonely = try APNsTokenKey(pem: Samples.keyPEM, keyID: "LONELYKEY1", teamID: "KLMNOPQRST")
        let other = try APNsTokenKey(pem: Samples.keyPEM, keyID: "ANOTHERKEY", teamID: "KLMNOPQRST")
        let watched = Watched()
        func bearer() throws -> String {
            let source = ProviderTokenSource.shared(for: lonely, time: clock.source)
            watched.source = source
            return try source.current(clock.source.now()).token.bearer
        }
        let first = try bearer()
        clock.advance(.seconds(50 * 60 - 1))
        _ = ProviderTokenSource.shared(for: other, time: clock.source)
        #expect(watched.source != nil)
        #expect(try bearer() == first)
        clock.advance(.seconds(1))
        _ = ProviderTokenSource.shared(for: other, time: clock.source)
        #expect(watched.source == nil)
        #expect(try bearer() != first)
    }

    private func key(_ number: Int) throws -> APNsTokenKey {
        try APNsTokenKey(pem: Samples.keyPEM, keyID: "ABCDEFGH\(10 + number)", teamID: "KLMNOPQRST")
    }

    @Test func `of the sources without clients, the one that has been unused for the longest time is removed first`() throws
    {
        let clock = ManualTime().source
        var sources = SharedTokenSources(mostUnused: 2)
        /// Makes a client that ends at once, and returns its token.
        func token(_ number: Int) throws -> ProviderToken {
            try sources.source(for: try key(number), time: clock).current(clock.now()).token
        }
        let first = try (0..<3).map { try token($0) }
        // The first one is used once more, and the second one is unused for the longest time.
        #expect(try token(0) === first[0])
        _ = try token(3)
        #expect(sources.count == 3, "two without a client, and the newest")
        #expect(try token(0) === first[0])
        #expect(try token(2) === first[2])
        #expect(try token(1) !== first[1])
    }

    @Test func `a source that a client uses is never removed`() throws {
        let clock = ManualTime().source
        var sources = SharedTokenSources(mostUnused: 2)
        let used = try (0..<5).map { sources.source(for: try key($0), time: clock) }
        for source in used { _ = try source.current(clock.now()) }
        for number in 5..<15 { _ = try sources.source(for: try key(number), time: clock).current(clock.now()) }
        #expect(sources.count == 8)
        for (number, source) in used.enumerated() {
            let again = sources.source(for: try key(number), time: clock)
            #expect(again === source)
        }
    }

    @Test func `a source that a client used for long was unused for a shorter time than one of before`() throws {
        let clock = ManualTime().source
        var sources = SharedTokenSources(mostUnused: 2)
        var long: ProviderTokenSource? = sources.source(for: try key(0), time: clock)
        let token = try long?.current(clock.now()).token
        _ = try sources.source(for: try key(1), time: clock).current(clock.now())
        _ = try sources.source(for: try key(2), time: clock).current(clock.now())
        long = nil
        _ = try sources.source(for: try key(3), time: clock).current(clock.now())
        #expect(sources.count == 3)
        let again = try sources.source(for: key(0), time: clock).current(clock.now())
        #expect(again.token === token)
    }

    @Test func `a source stays shared while a client uses it, however old its token is`() throws {
        let clock = ManualTime()
        let key = try APNsTokenKey(pem: Samples.keyPEM, keyID: "USEDKEY001", teamID: "KLMNOPQRST")
        let source = ProviderTokenSource.shared(for: key, time: clock.source)
        _ = try source.current(clock.source.now())
        clock.advance(.seconds(86_400))
        #expect(ProviderTokenSource.shared(for: key, time: clock.source) === source)
        withExtendedLifetime(source) {}
    }
}
