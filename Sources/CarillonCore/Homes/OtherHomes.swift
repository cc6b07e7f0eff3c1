/// The other homes of the server, as the features of one home use them.
///
/// A feature uses its own home (``LocalHome``) for the devices of that home, and the other homes for all other devices.
package struct OtherHomes: Sendable {
    private let homes: Homes?
    private let own: ObjectIdentifier?

    /// No other home.
    package static let none = OtherHomes(homes: nil, own: nil)

    /// Whether one home has all shards. A server with several homes has other homes also while one of them has all shards.
    package var isNone: Bool { homes?.isOne ?? true }

    /// - Parameter home: The home that sends the requests.
    package init(_ homes: Homes, beside home: any LocalHome) { self.init(homes: homes, own: ObjectIdentifier(home)) }

    private init(homes: Homes?, own: ObjectIdentifier?) {
        self.homes = homes
        self.own = own
    }

    /// Sends a request to the home of its shard.
    ///
    /// - Throws: The error of the feature of the other home: ``Refusal`` or ``StoreFault``. ``StoreFault/Kind/unreachable`` if
    ///   the home cannot be reached. ``StoreFault/Kind/outcomeUnknown`` if it does not answer; in this case the request can have
    ///   taken effect.
    package func ask<Question: HomeQuestion>(_ question: Question) async throws -> Question.Answer {
        guard let homes, let shard = question.shard else { throw StoreFault(.unavailable, "there is no such home") }
        return try await homes.ask(question, at: shard)
    }

    /// Sends a request to each other home at the same time, and returns the answers.
    ///
    /// - Throws: The first fault, when all homes have answered or failed. See ``ask(_:)``.
    @discardableResult
    package func askEach<Question: HomeQuestion>(_ question: Question) async throws -> [Question.Answer] {
        try await results(of: question).map { try $0.get() }
    }

    /// Informs each other home of a stored change, at the same time.
    ///
    /// - Throws: The first fault, as ``StoreFault/Kind/outcomeUnknown``, after all homes have answered or failed. The change
    ///   stays. Its effects at the home with the fault can be missing.
    package func inform<Question: HomeQuestion>(of question: Question) async throws where Question.Answer == Void {
        do {
            try await askEach(question)
        } catch let fault as StoreFault {
            throw StoreFault(.outcomeUnknown, "a change is stored, and another home was not informed: \(fault.message)")
        }
    }

    /// Sends a request to each other home at the same time, and returns the answer or the fault of each. See ``ask(_:)``.
    package func results<Question: HomeQuestion>(of question: Question) async -> [Result<Question.Answer, any Error>] {
        await withTaskGroup(of: Result<Question.Answer, any Error>.self) { group in
            for home in others {
                group.addTask {
                    do throws(HomeFault) {
                        return try await home.ask(question)
                    } catch {
                        return .failure(StoreFault(error))
                    }
                }
            }
            var results: [Result<Question.Answer, any Error>] = []
            for await result in group { results.append(result) }
            return results
        }
    }

    /// Sends a hint to each other home. If a hint is lost, the other home finds the change at its next sweep.
    package func hint<Question: HomeQuestion>(_ question: Question) where Question.Answer == Void {
        for home in others {
            // Ends with the answer of the home.
            Task { _ = try? await home.ask(question) }
        }
    }

    /// Groups values by their homes, in their order. The shard of a group is the shard of its first value. It identifies the
    /// home.
    package func parts<Value>(
        of values: [Value], by shard: (Value) -> Shard
    ) -> [(shard: Shard, values: [Value])] {
        var parts: [(shard: Shard, values: [Value])] = []
        var places: [ObjectIdentifier?: Int] = [:]
        for value in values {
            let shard = shard(value)
            let home = homes.map { ObjectIdentifier($0.home(of: shard)) }
            if let place = places[home] {
                parts[place].values.append(value)
            } else {
                places[home] = parts.count
                parts.append((shard, [value]))
            }
        }
        return parts
    }

    private var others: [any Home] { homes?.all(but: own) ?? [] }
}
