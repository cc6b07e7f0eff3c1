import CarillonCore
import CarillonWire

/// Publishes updates of items of one home. If the question is sent twice, an update without a place in a sequence is published
/// twice, as if its publisher had repeated it.
struct PublishItems: HomeQuestion {
    /// The results in the order of the updates. Nil if nothing was done because the home does not have the shard of the item, or
    /// the shard is moving.
    typealias Answer = [Result<ItemReceipt, Refusal>?]

    struct Update: Sendable {
        var item: ItemName
        var fields: [WrittenField]
        var place: ItemUpdate.Place?
    }

    var shard: Shard?
    var app: AppSerial
    var updates: [Update]
}

extension HomeDomain {
    /// Adds the answers to questions about items.
    func addItemAnswers(to answers: inout HomeAnswers) {
        answers.on(PublishItems.self, at: self) { home, question in
            await home.publish(question)
        }
    }

    /// Publishes item updates, each at the home of its item. The results are in the order of the updates.
    func publishAtHomes(
        _ updates: [PublishItems.Update], of app: AppSerial
    ) async -> [Result<ItemReceipt, any Error>] {
        var results = await outcomes(of: updates, of: app, asksOwn: false)
        // The shards of these items moved, or are moving. A question waits for the end of a move, and then reaches the new home.
        let left = updates.indices.filter { results[$0] == nil }
        if !left.isEmpty {
            let answers = await outcomes(of: left.map { updates[$0] }, of: app, asksOwn: true)
            for (place, answer) in zip(left, answers) { results[place] = answer }
        }
        return zip(updates, results).map { update, result in
            result ?? .failure(HomeFault.moved(to: Shard(of: app, item: update.item.text)))
        }
    }

    /// - Parameter asksOwn: Whether this home also receives a question for its items, like other homes.
    private func outcomes(
        of updates: [PublishItems.Update], of app: AppSerial, asksOwn: Bool
    ) async -> [Result<ItemReceipt, any Error>?] {
        // The indexes of the updates for each home. A home is found by the first shard.
        var parts: [ObjectIdentifier: (shard: Shard, places: [Int])] = [:]
        for (place, update) in updates.enumerated() {
            let shard = Shard(of: app, item: update.item.text)
            parts[ObjectIdentifier(homes.home(of: shard)), default: (shard, [])].places.append(place)
        }
        let unanswered = StoreFault(.outcomeUnknown, "a home answered for fewer updates than it was asked to publish")
        var results = [Result<ItemReceipt, any Error>?](repeating: .failure(unanswered), count: updates.count)
        await withTaskGroup(of: (places: [Int], answers: [Result<ItemReceipt, any Error>?]).self) { group in
            for part in parts.values {
                let question = PublishItems(shard: part.shard, app: app, updates: part.places.map { updates[$0] })
                group.addTask { [self] in
                    (part.places, await outcomes(of: question, at: part.shard, asksOwn: asksOwn))
                }
            }
            for await part in group {
                for (place, answer) in zip(part.places, part.answers) { results[place] = answer }
            }
        }
        return results
    }

    private func outcomes(
        of question: PublishItems, at shard: Shard, asksOwn: Bool
    ) async -> [Result<ItemReceipt, any Error>?] {
        do {
            let isOwn = !asksOwn && home.shards.contains(shard)
            let answers = isOwn ? await publish(question) : try await others.ask(question)
            return answers.map { answer in answer.map { $0.mapError { $0 as any Error } } }
        } catch let fault as StoreFault where fault.kind == .unreachable {
            // The home published nothing. If only this shard moves, the other updates are published with the next question.
            return question.updates.map { update in
                Shard(of: question.app, item: update.item.text) == shard ? .failure(fault) : nil
            }
        } catch {
            return question.updates.map { _ in .failure(error) }
        }
    }

    private func publish(_ question: PublishItems) async -> PublishItems.Answer {
        let shards = question.updates.map { Shard(of: question.app, item: $0.item.text) }
        // Each shard is checked only once: if an earlier update of an item is not published, later ones must not be published
        // either.
        let open = ShardSet(ShardSet(shards).shards.filter { home.isOpen($0) })
        var own: [(item: ItemName, fields: [WrittenField], place: ItemUpdate.Place?)] = []
        for (update, shard) in zip(question.updates, shards) where open.contains(shard) {
            own.append((update.item, update.fields, update.place))
        }
        var results = await items.publish(own, of: question.app)[...]
        return shards.map { shard in
            guard open.contains(shard) else { return nil }
            return results.removeFirst().mapError { error in Refusal(error, logger: self.shared.logger) }
        }
    }
}
