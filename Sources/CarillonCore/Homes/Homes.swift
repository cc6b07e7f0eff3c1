package import CarillonWire
package import Logging
package import Metrics
import Synchronization

/// Finds the home of a device, an item or another object that has a shard.
///
/// Connections and requests use each home as a ``Home``, also if it is in this process. A feature uses its own home as a
/// ``LocalHome``, and the other homes as ``OtherHomes``.
package final class Homes: Sendable {
    /// A home, and the link by which this process uses it.
    package struct Place: Sendable {
        /// The home itself, or a link to it.
        package var link: any Home
        /// The home, if it is in this process.
        package var local: (any LocalHome)?

        package init(_ link: any Home, local: (any LocalHome)?) {
            self.link = link
            self.local = local
        }
    }

    private final class Table: Sendable {
        /// The place of each shard.
        let rows: Mutex<[UInt8]>
        init(_ rows: [UInt8]) { self.rows = Mutex(rows) }
    }

    private let places: [Place]
    /// The link to the home that has all shards; nil if there are several homes.
    private let only: (any Home)?
    /// Nil if one home has all shards.
    private let table: Table?
    private let moved = MovedDevices()
    private let requests: Requests

    package convenience init(only home: any LocalHome & Home) { self.init(only: home, reachedBy: home) }

    /// - Parameter link: How connections reach the home: the home itself, or a link to it.
    package init(only home: any LocalHome, reachedBy link: any Home) {
        places = [Place(link, local: home)]
        only = link
        table = nil
        requests = Requests(by: MetricsSystem.factory)
    }

    /// - Parameters:
    ///   - places: Two to 255 homes.
    ///   - factory: Makes the counters of requests to homes.
    ///   - index: Returns the place of a shard.
    package init(
        _ places: [Place], countingBy factory: any MetricsFactory = MetricsSystem.factory, _ index: (Shard) -> Int
    ) {
        precondition((2...255).contains(places.count), "A table must have 2 to 255 homes.")
        self.places = places
        only = nil
        table = Table((0..<UInt16(Shard.count)).map { UInt8(index(Shard(number: $0))) })
        requests = Requests(by: factory)
    }

    private func place(of shard: @autoclosure () -> Shard) -> Place {
        guard let table else { return places[0] }
        let number = Int(shard().number)
        return places[Int(table.rows.withLock { $0[number] })]
    }

    /// Whether one home has all shards and is in this process. Features then call it directly.
    package var isOne: Bool { table == nil }

    package func home(of shard: Shard) -> any Home { only ?? place(of: shard).link }

    package func home(of device: DeviceSerial) -> any Home { only ?? place(of: Shard(of: device)).link }

    /// Returns the home of a device that is not read yet.
    package func home(of name: DeviceName) -> any Home { only ?? place(of: moved.shard(of: name)).link }

    /// Returns the shard of a device that is not read yet, as far as it is known.
    package func shard(of name: DeviceName) -> Shard { moved.shard(of: name) }

    /// Returns the shard of a device that is not read yet, as far as it is known.
    package func shard(of device: DeviceID) -> Shard { moved.shard(of: device) }

    /// Notes the shard that a home reported for a device.
    package func note(_ name: DeviceName, in shard: Shard) { moved.note(name, in: shard) }

    /// Notes that the shards belong to another place from now on.
    package func move(_ shards: ShardSet, to place: Int) {
        precondition(places.indices.contains(place), "The home must be in the table.")
        table?.rows.withLock { rows in
            for shard in shards.shards { rows[Int(shard.number)] = UInt8(place) }
        }
    }

    // MARK: Calls

    /// The largest number of moves of a shard that one call follows.
    private static let mostMoves = 8

    /// Makes a call to a home. If the home reports that another home has the shard of the call, makes the call to that home.
    ///
    /// - Parameter note: Receives the shards that homes report.
    private func follow<Result>(
        from first: any Home, noting note: (Shard) -> Void = { _ in }, _ call: (any Home) async throws(HomeFault) -> Result
    ) async throws(HomeFault) -> Result {
        var home = first
        for _ in 0..<Self.mostMoves {
            do throws(HomeFault) {
                return try await call(home)
            } catch {
                guard case .moved(let shard) = error else { throw error }
                note(shard)
                home = self.home(of: shard)
            }
        }
        return try await call(home)
    }

    /// Connects a device that sent its proof. See ``Home/arrive(_:_:_:speaking:openedAt:as:)``. If the outcome is unknown, the
    /// session is removed.
    package func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: PageRequest, speaking version: Int, as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        try await arrive(name, proof, load, speaking: version, openedAt: .now(), as: session)
    }

    private func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: PageRequest, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        try await follow(from: home(of: name), noting: { moved.note(name, in: $0) }) {
            (home) async throws(HomeFault) -> Arrived in
            do throws(HomeFault) {
                return try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: session)
            } catch {
                // Without this, a session without a connection could stay, receive messages of TTL 0, and postpone wakes.
                if error == .outcomeUnknown { home.leave(session, of: name) }
                throw error
            }
        }
    }

    /// Connects a session at the new home of its device, without a page. If the outcome is unknown, the session is removed.
    ///
    /// - Parameter openedAt: The time with which the session arrived at the former home.
    package func arriveAgain(
        _ name: DeviceName, _ proof: DeviceProof, speaking version: Int, openedAt: OpeningTime, as session: any LiveSession
    ) async -> ArrivedAgain {
        do throws(HomeFault) {
            let arrived = try await arrive(
                name, proof, .nothing, speaking: version, openedAt: openedAt, as: session)
            switch arrived {
            case .device: return .joined
            case .unknownDevice: return .deviceGone
            case .failed(let fault): return .failed(fault)
            }
        } catch {
            return .failed(StoreFault(error))
        }
    }

    /// Reads an inbox as ``Home/read(_:of:)`` does, also if the device has moved. A fault of the home is returned like a fault of
    /// the store: a connection ends with both.
    ///
    /// - Parameter logger: Receives an entry for a fault of the home.
    package func load(
        _ load: PageRequest, of device: DeviceSerial, logger: Logger
    ) async -> Result<InboxRead, StoreFault> {
        do throws(HomeFault) {
            return try await follow(from: home(of: device)) {
                (home) async throws(HomeFault) -> Result<InboxRead, StoreFault> in try await home.read(load, of: device)
            }
        } catch {
            return .failure(StoreFault(error, logger: logger))
        }
    }

    /// Runs a whole request at the home of a shard. If the home reports that the shard of the request has moved, sends the
    /// request to the home of the other shard. After another fault nothing is repeated.
    ///
    /// - Parameter device: The device that decided the shard. If it has moved, its shard is kept.
    /// - Throws: ``HomeFault``. Before ``HomeFault/moved(to:)`` and ``HomeFault/unreachable``, no part of a streamed body was
    ///   read.
    package func handle(
        _ request: HomeRequest, at shard: Shard, of device: DeviceID? = nil
    ) async throws(HomeFault) -> HomeResponse {
        var shard = shard
        let noting = { (other: Shard) in
            shard = other
            if let device { self.moved.note(device, in: other) }
        }
        return try await follow(from: home(of: shard), noting: noting) { (home) async throws(HomeFault) -> HomeResponse in
            var request = request
            if request.shard != nil { request.shard = shard }
            return try await pass(request, to: home)
        }
    }

    private func pass(_ request: HomeRequest, to home: any Home) async throws(HomeFault) -> HomeResponse {
        do throws(HomeFault) {
            let response = try await home.handle(request)
            requests.answered.increment()
            return response
        } catch {
            switch error {
            case .moved: requests.moved.increment()
            case .unreachable: requests.unreachable.increment()
            case .outcomeUnknown: requests.outcomeUnknown.increment()
            }
            throw error
        }
    }

    private struct Requests {
        let answered: Counter
        let moved: Counter
        let unreachable: Counter
        let outcomeUnknown: Counter

        init(by factory: any MetricsFactory) {
            answered = ServerMetric.homeRequests.counter("answered", by: factory)
            moved = ServerMetric.homeRequests.counter("moved", by: factory)
            unreachable = ServerMetric.homeRequests.counter("unreachable", by: factory)
            outcomeUnknown = ServerMetric.homeRequests.counter("outcome_unknown", by: factory)
        }
    }

    /// Sends a request to the home of a shard. If the shard has moved, sends the request to the new home.
    ///
    /// - Throws: See ``OtherHomes/ask(_:)``.
    package func ask<Question: HomeQuestion>(_ question: Question, at shard: Shard) async throws -> Question.Answer {
        let answer: Result<Question.Answer, any Error>
        do throws(HomeFault) {
            answer = try await follow(from: home(of: shard)) {
                (home) async throws(HomeFault) -> Result<Question.Answer, any Error> in try await home.ask(question)
            }
        } catch {
            throw StoreFault(error)
        }
        return try answer.get()
    }

    /// Returns all homes, except the home with this identity.
    package func all(but own: ObjectIdentifier? = nil) -> [any Home] {
        places.filter { place in place.local.map(ObjectIdentifier.init) != own || own == nil }.map(\.link)
    }

    // MARK: Homes of this process

    /// The homes in this process.
    package var here: [any LocalHome] { places.compactMap(\.local) }

    /// The shards whose home is in this process.
    package var shards: ShardSet {
        guard table != nil else { return places[0].local?.shards ?? .none }
        return ShardSet(here.flatMap { $0.shards.shards })
    }

    /// Returns the home of the device if it is in this process.
    package func localHome(of device: DeviceSerial) -> (any LocalHome)? { place(of: Shard(of: device)).local }
}
