import CarillonBasics
import CarillonWire
import Metrics

/// Asking an app to come to the front of the screen: AppKinetics' service for it, which every provider has. It is given to a device that is
/// connected, or to nobody; nothing of it is kept, and there is no result.
extension Services {
    func askToFront(_ call: Call, _ provider: ServiceProvider, by consumer: Device) async throws -> Timestamp {
        guard call.header.version.text == RequestHeader.frontVersion else {
            throw Refusal(
                .serviceVersionNotFound,
                "The only version of \(RequestHeader.frontService) is \(RequestHeader.frontVersion).")
        }
        guard call.header.method.text == RequestHeader.frontMethod else {
            throw Refusal(
                .serviceMethodNotFound, "The only method of \(RequestHeader.frontService) is \(RequestHeader.frontMethod).")
        }
        guard call.content.files == 0 else {
            throw Refusal(.requestTooLarge, "A request of \(RequestHeader.frontService) must have no files.")
        }
        let now = time.now()
        let event = ServiceEvent.request(call.header, from: consumer.peer, expiresAt: now.milliseconds, call.content)
        let request = FrontRequest(
            device: provider.device, app: provider.app, request: call.header.id, body: event.body, at: now)
        guard try await offer(request) else {
            refused.increment()
            throw Refusal(.providerSuspended, "The provider is not connected and cannot be brought to the front.")
        }
        made.increment()
        return now
    }
}
