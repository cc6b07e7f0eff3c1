import CarillonAPNs
package import CarillonCore
package import CarillonWire
import Synchronization

/// The gateway of the environment `test`. Opens no connection, and stores the last payloads for developers of apps.
package final class TestGateway: PushGateway {
    package struct Sent: Sendable {
        package var at: Timestamp
        package var device: DeviceSerial
        package var id: Bytes16
        package var payload: [UInt8]
    }

    private let rendering: PushRendering
    private let texts: AlertTexts
    private let app: AppSerial
    private let time: TimeSource
    private let sent = Mutex<[Sent]>([])

    init(app: AppSerial, rendering: PushRendering, texts: AlertTexts, time: TimeSource) {
        self.app = app
        self.rendering = rendering
        self.texts = texts
        self.time = time
    }

    /// The last stored pushes, the oldest first.
    package var remembered: [Sent] { sent.withLock { $0 } }

    package func send(_ push: LeasedPush) async -> PushAnswer {
        let text = if case .alert = push.content { try? await texts.text(of: app) } else { AlertText?.none }
        let payload = Array(rendering.notification(of: push, text).jsonString.utf8)
        sent.withLock { sent in
            sent.append(Sent(at: time.now(), device: push.device, id: push.id, payload: payload))
            sent.removeFirst(max(0, sent.count - PushLimits.testPayloads))
        }
        return .taken
    }

    package func close() async {}
}
