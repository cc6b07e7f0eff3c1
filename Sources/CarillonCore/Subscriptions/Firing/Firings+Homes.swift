/// The deliveries of one step, to devices of this home and of other homes.
struct FiringStep: Sendable {
    fileprivate typealias Elsewhere = (place: Int, delivery: FiringDelivery)

    fileprivate let results: ResultCollector<DeliveryResult>
    fileprivate var elsewhere: [Elsewhere] = []

    /// - Parameter count: The number of results.
    init(_ count: Int) { results = ResultCollector(count) }

    /// Notes a result without a delivery.
    func note(_ place: Int, _ result: DeliveryResult) { results.note(place, result) }
}

extension Firings {
    /// Starts a delivery. Its result is stored at the same place in the results of the step.
    func deliver(_ delivery: FiringDelivery, _ place: Int, of step: inout FiringStep) {
        guard home.has(delivery.device) else { return step.elsewhere.append((place, delivery)) }
        let results = step.results
        deliver(delivery) { results.note(place, $0) }
    }

    /// Makes the deliveries to other homes, and waits for all results. If a home does not answer, each delivery to it has failed.
    func results(of step: FiringStep) async -> [DeliveryResult] {
        if !step.elsewhere.isEmpty { await askOthers(step) }
        return await step.results.all()
    }

    private func askOthers(_ step: FiringStep) async {
        await withTaskGroup(of: Void.self) { group in
            for (shard, values) in others.parts(of: step.elsewhere, by: { Shard(of: $0.delivery.device) }) {
                group.addTask {
                    let results = await self.ask(FiringDeliveries(to: shard, values.map(\.delivery)))
                    for (place, value) in values.enumerated() {
                        step.results.note(value.place, place < results.count ? results[place] : .failed(Self.unanswered))
                    }
                }
            }
        }
    }

    private func ask(_ question: FiringDeliveries) async -> [DeliveryResult] {
        do {
            return try await others.ask(question)
        } catch {
            let fault = error as? StoreFault ?? StoreFault(.unavailable, "\(error)")
            return question.deliveries.map { _ in .failed(fault) }
        }
    }

    /// Delivers notifications to devices of this home, at the request of the home of the item.
    package func deliver(_ deliveries: [FiringDelivery]) async -> [DeliveryResult] {
        let results = ResultCollector<DeliveryResult>(deliveries.count)
        for (place, delivery) in deliveries.enumerated() {
            if home.has(delivery.device) {
                deliver(delivery) { results.note(place, $0) }
            } else {
                results.note(place, .failed(Self.movedAway))
            }
        }
        return await results.all()
    }

    private static let unanswered = StoreFault(
        .outcomeUnknown, "a home answered for fewer deliveries than it was asked to make")
    private static let movedAway = StoreFault(.unreachable, "another home has the device")
}
