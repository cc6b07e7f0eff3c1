import CarillonBasics
import CarillonWire
import Metrics

/// Front requests, which bring an app to the front of the screen. Every provider has this service of AppKinetics. A front request
/// is delivered to a connected device or dropped. It is not stored, and has no result.
extension Services {
    func askToFront(_ call: Call, _ provider: ServiceProvider, by consumer: Device) async throws -> Timestamp {
        guard call.header.version.text == RequestHeader.frontVersion else {
            throw Refusal(
                .serviceVersionNotFound, "\(RequestHeader.frontService) has one version, \(RequestHeader.frontVersion).")
        }
        guard call.header.method.text == RequestHeader.frontMethod else {
            throw Refusal(
                .serviceMethodNotFound, "\(RequestHeader.frontService) has one method, \(RequestHeader.frontMethod).")
        }
        guard call.content.files == 0 else { throw Refusal(.requestTooLarge, "A front request has no files.") }
        let now = time.now()
        let event = ServiceEvent.request(call.header, from: consumer.peer, expiresAt: now.milliseconds, call.content)
        let request = FrontRequest(
            device: provider.device, app: provider.app, request: call.header.id, body: event.body, at: now)
        guard try await offer(request) else {
            refused.increment()
            throw Refusal(.providerSuspended, "The provider is not connected, and cannot come to the front.")
        }
        made.increment()
        return now
    }
}
