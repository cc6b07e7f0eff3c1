import APNsFigures
import CarillonAPNs
import Synchronization

/// Sends rounds of pushes, either with one call for each push or with one call for all.
struct Sender: Sendable {
    let client: APNsClient
    let alert: VaryingAlert
    let tokens = DeviceTokens()

    /// Counts over all tasks.
    private final class Count: Sendable {
        private let value = Atomic<Int>(0)
        func next() -> Int { value.wrappingAdd(1, ordering: .relaxed).oldValue }
    }

    func first() async throws {
        let response = try await client.send(alert.notification(0), to: tokens[0])
        guard response.isAccepted else { throw FirstPushRefused(status: response.status) }
    }

    /// Runs tasks that each make a notification, send it and wait for the response, repeatedly.
    /// - Returns: The number of pushes that were not accepted.
    func singles(_ count: Int, inFlight: Int) async -> Int {
        let numbers = Count()
        return await withTaskGroup(of: Int.self) { group in
            for _ in 0..<min(inFlight, count) {
                group.addTask {
                    var failures = 0
                    while true {
                        let number = numbers.next()
                        guard number < count else { return failures }
                        do {
                            let response = try await client.send(alert.notification(number), to: tokens[number])
                            if !response.isAccepted { failures += 1 }
                        } catch {
                            failures += 1
                        }
                    }
                }
            }
            return await group.reduce(0, +)
        }
    }

    /// Sends one notification to many devices.
    /// - Returns: The number of pushes that were not accepted.
    func batch(_ recipients: [String]) async throws -> Int {
        var accepted = 0
        for await result in try client.send(alert.notification(1), to: recipients) where result.isAccepted {
            accepted += 1
        }
        return recipients.count - accepted
    }
}

struct FirstPushRefused: Error, CustomStringConvertible {
    var status: Int
    var description: String { "the first push was answered with \(status)" }
}
