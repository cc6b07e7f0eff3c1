import CarillonBasics
import CarillonWire
import Metrics

/// Asking an app to come to the front of the screen: AppKinetics' service for it, which every provider has. It is given to a device that is
/// connected, or to nobody; nothing of it is kept, and there is no result.
extension Services {
    func askToFront(_ wish: Wish, _ provider: ServiceProvider, by consumer: Device) async throws -> Timestamp {
        guard wish.header.version.text == RequestHeader.frontVersion else {
            throw Refusal(
                .serviceVersionNotFound, "\(RequestHeader.frontService) has one version, \(RequestHeader.frontVersion).")
        }
        guard wish.header.method.text == RequestHeader.frontMethod else {
            throw Refusal(
                .serviceMethodNotFound, "\(RequestHeader.frontService) has one method, \(RequestHeader.frontMethod).")
        }
        guard wish.content.files == 0 else { throw Refusal(.requestTooLarge, "A front request has no files.") }
        let now = time.now()
        let event = ServiceEvent.request(wish.header, from: consumer.peer, expiresAt: now.milliseconds, wish.content)
        let wasGiven = await home.giveOnce(to: provider.device) { id in
            Envelope(
                id: id, device: provider.device, app: provider.app,
                origin: Origin(.request, serial: id.position, id: wish.header.id.value),
                kind: .service(.notice, body: event.body), acceptedAt: now, expiresAt: now)
        }
        guard wasGiven else {
            refused.increment()
            throw Refusal(.providerSuspended, "The provider is not connected, and cannot come to the front.")
        }
        made.increment()
        return now
    }
}
