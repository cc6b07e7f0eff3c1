import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension ServiceOffering {
    /// Makes an offer that is within the server's limits.
    ///
    /// - Throws: ``ServiceError`` with the first value that is not valid, and its position.
    init(name: String, version: String, icon: Data?, checking methods: [ServiceMethod]) throws(ServiceError) {
        for (number, method) in methods.enumerated() { try method.check(at: "Method \(number + 1): ") }
        let services = Set(methods.map { Service(id: $0.service, version: $0.version) })
            .sorted { ($0.id, $0.version) < ($1.id, $1.version) }
        self.init(name: name, version: version, icon: icon, services: services)
        try Self.check(name, "name", upTo: OfferLimits.nameBytes)
        try Self.check(version, "version", upTo: OfferLimits.versionBytes)
        guard services.count <= OfferLimits.services else {
            throw ServiceError(
                .fieldInvalid,
                "The offer has \(services.count) versions of services; the limit is \(OfferLimits.services).")
        }
        guard let icon else { return }
        guard OfferLimits.isPNG(icon) else {
            throw ServiceError(.fieldInvalid, "The \"icon\" of the offer is not a PNG file.")
        }
        guard icon.count <= OfferLimits.iconBytes else {
            throw ServiceError(
                .fieldInvalid,
                "The \"icon\" of the offer has \(icon.count) bytes; the limit is \(OfferLimits.iconBytes) bytes.")
        }
    }

    private static func check(_ text: String, _ name: String, upTo limit: Int) throws(ServiceError) {
        guard !OfferLimits.isText(text, upTo: limit) else { return }
        let bytes = text.utf8.count
        let fault = (1...limit).contains(bytes) ? "has control characters" : "has \(bytes) bytes"
        let rule = "a valid \(name) has 1 to \(limit) bytes of UTF-8, and no control characters"
        throw ServiceError(.fieldInvalid, "The \"\(name)\" of the offer \(fault); \(rule).")
    }
}

extension ServiceMethod {
    /// - Parameter place: The text before the fault.
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serviceIDInvalid`` or ``ServiceError/Code/serviceMethodNotFound``.
    func check(at place: String = "") throws(ServiceError) {
        if let problem = ServiceID.problem(in: service) ?? ServiceVersion.problem(in: version) {
            throw ServiceError(.serviceIDInvalid, place + problem)
        }
        guard MethodName(name) != nil else {
            throw ServiceError(
                .serviceMethodNotFound,
                place + "The name of a method is a letter, and up to 63 letters from A to Z, digits and underscores.")
        }
    }
}
