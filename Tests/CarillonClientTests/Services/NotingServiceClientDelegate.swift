import Synchronization

@testable import CarillonClient

/// Stores the results that it receives.
final class NotingServiceClientDelegate: ServiceClientDelegate {
    let results = Mutex<[(id: String, result: Result<ServiceReply, ServiceError>)]>([])
    let removed = Mutex<[String]>([])
    let reasons = Mutex<[ResultRemoval]>([])

    func serviceClient(
        _ client: ServiceClient, didReceiveFrom application: ServiceApplication,
        _ result: Result<ServiceReply, ServiceError>, id: String
    ) {
        results.withLock { $0.append((id, result)) }
    }

    func serviceClient(
        _ client: ServiceClient, didRemoveResultFrom application: ServiceApplication, id: String, reason: ResultRemoval
    ) {
        reasons.withLock { $0.append(reason) }
        removed.withLock { $0.append(id) }
    }

    var ids: [String] { results.withLock { $0.map(\.id) } }
}
