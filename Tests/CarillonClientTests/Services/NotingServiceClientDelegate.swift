import Synchronization

@testable import CarillonClient

/// Notes the results that it is told.
final class NotingServiceClientDelegate: ServiceClientDelegate {
    let results = Mutex<[(id: String, result: Result<ServiceReply, ServiceError>)]>([])
    let removed = Mutex<[String]>([])

    func serviceClient(
        _ client: ServiceClient, didReceiveFrom application: ServiceApplication,
        _ result: Result<ServiceReply, ServiceError>, id: String
    ) {
        results.withLock { $0.append((id, result)) }
    }

    func serviceClient(_ client: ServiceClient, didRemoveResultFrom application: ServiceApplication, id: String) {
        removed.withLock { $0.append(id) }
    }

    var ids: [String] { results.withLock { $0.map(\.id) } }
}
