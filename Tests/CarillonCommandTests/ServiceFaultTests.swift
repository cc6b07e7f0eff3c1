import ArgumentParser
import CarillonClient
import Testing

@testable import CarillonCommand

/// The exit statuses of the commands of services.
struct ServiceFaultTests {
    @Test(arguments: [
        (ServiceError.Code.callForbidden, ExitStatus.notAllowed), (.identityChanged, ExitStatus.notAllowed),
        (.serverUnavailable, ExitStatus.unreachable), (.providerBusy, ExitStatus.tryAgain),
        (.deadlineExceeded, ExitStatus.tryAgain), (.providerSuspended, ExitStatus.tryAgain),
        (.attachmentChanged, ExitStatus.tryAgain), (.attachmentMissing, ExitStatus.noInput),
        (.storageUnavailable, ExitStatus.dataDirectory), (.serviceIDInvalid, ExitStatus.refused),
        (.pathInvalid, ExitStatus.refused),
    ])
    func `an error of a service has an exit status and its code`(code: ServiceError.Code, status: ExitCode) {
        let fault = CommandFault(ServiceError(code, "why"))
        #expect(fault.code == status)
        #expect(fault.message == "\(code.name): why")
    }
}
