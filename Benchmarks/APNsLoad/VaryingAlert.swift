import ArgumentParser
import CarillonAPNs

/// An alert as an app's backend makes it, different for each number. Its payload always has the same length.
struct VaryingAlert: Sendable {
    private let filler: String

    init(payloadBytes: Int) throws {
        let bare = Self.notification(0, filler: "").jsonString.utf8.count
        guard payloadBytes >= bare else { throw ValidationError("--payload must be \(bare) or more") }
        filler = String(repeating: ".", count: payloadBytes - bare)
        for number in [1, 999_999] {
            let length = notification(number).jsonString.utf8.count
            guard length == payloadBytes else {
                throw ValidationError("the payload of number \(number) has \(length) bytes instead of \(payloadBytes)")
            }
        }
    }

    func notification(_ number: Int) -> APNsNotification { Self.notification(number, filler: filler) }

    private static func notification(_ number: Int, filler: String) -> APNsNotification {
        // The number has seven digits, so that the length is constant.
        let order = 1_000_000 + number % 9_000_000
        return .alert(title: "Order \(order) is ready", body: "Collect it at counter \(10 + number % 90)\(filler)")
            .sound("default")
            .threadID("orders")
            .custom("order", order)
    }
}
