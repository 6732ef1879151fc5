/* A cart swings its pole up under a controller that was written in Python.
 *
 * export_mpc.py makes the headers and the object files. A row of 159 doubles goes to the standard
 * output for each period, the state, the force and the plan; times and checks go to the standard
 * error stream. The exit status is 1 if something is wrong.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "control.h"
#include "derivatives.h"
#include "plant.h"

enum {
    STATE = 4,
    PLAN = DERIVATIVES_OUT_HESSIAN_ROWS,
    MULTIPLIERS = sizeof control_multipliers / sizeof *control_multipliers,
    PERIODS = sizeof plant_pushes / sizeof *plant_pushes
};

static unsigned char workspace[CONTROL_WORKSPACE_BYTES + PLANT_WORKSPACE_BYTES
                               + DERIVATIVES_WORKSPACE_BYTES];

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The largest derivative of the Lagrangian, but in the state that the plan begins with. */
static double slope_of(const double *plan, const double *multipliers)
{
    double gradient[PLAN], hessian[DERIVATIVES_OUT_HESSIAN_NNZ], largest = 0.0;
    const derivatives_out out = {gradient, hessian};
    if (derivatives_call(plan, multipliers, &out, workspace) != DERIVATIVES_SUCCESS) return NAN;
    for (int i = STATE; i < PLAN; i++) largest = fmax(largest, fabs(gradient[i]));
    return largest;
}

/* How far the Hessian times a direction is from a difference of gradients, relative to it. */
static double error_of_hessian(const double *plan, const double *multipliers)
{
    double gradient[2][PLAN], hessian[DERIVATIVES_OUT_HESSIAN_NNZ], moved[PLAN], error = 0.0, size = 0.0;
    const double length = 1e-6;
    for (int side = 0; side < 2; side++) {
        const derivatives_out out = {gradient[side], hessian};
        for (int i = 0; i < PLAN; i++) moved[i] = plan[i] + (side ? length : -length) * cos(i);
        if (derivatives_call(moved, multipliers, &out, workspace)) return NAN;
    }
    const derivatives_out out = {moved, hessian};
    if (derivatives_call(plan, multipliers, &out, workspace)) return NAN;
    for (int i = 0; i < PLAN; i++) {
        double product = 0.0;
        const int32_t *begin = &derivatives_out_hessian_indptr[i];
        for (int32_t k = begin[0]; k < begin[1]; k++)
            product += hessian[k] * cos(derivatives_out_hessian_indices[k]);
        error = fmax(error, fabs(product - (gradient[1][i] - gradient[0][i]) / (2.0 * length)));
        size = fmax(size, fabs(product));
    }
    return error / size;
}

int main(void)
{
    double state[2][STATE], plan[2][PLAN], multipliers[2][MULTIPLIERS], force;
    double shortest = INFINITY, total = 0.0, slope = 0.0, error = 0.0;
    memcpy(state[0], control_state, sizeof state[0]);
    memcpy(plan[0], control_plan, sizeof plan[0]);
    memcpy(multipliers[0], control_multipliers, sizeof multipliers[0]);
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int period = 0; period < PERIODS; period++) {
        const int now = period % 2, next = 1 - now;
        const control_out out = {&force, multipliers[next], plan[next]};
        const double start = seconds();
        int32_t status = control_call(state[now], plan[now], multipliers[now], &out, workspace);
        const double took = seconds() - start;
        if (status != CONTROL_SUCCESS) return fputs(control_error_text(status), stderr), 1;
        shortest = fmin(shortest, took);
        total += took;
        slope = slope_of(plan[next], multipliers[next]);
        error = fmax(error, error_of_hessian(plan[next], multipliers[next]));
        fwrite(state[now], sizeof state[now], 1, stdout);
        fwrite(&force, sizeof force, 1, stdout);
        fwrite(plan[next], sizeof plan[next], 1, stdout);
        status = plant(state[now], &force, &plant_pushes[period], state[next], workspace);
        if (status != PLANT_SUCCESS) return fputs(plant_error_text(status), stderr), 1;
    }
    fprintf(stderr, "a plan takes %.0f us, %.0f on average; largest slope of the last one: %.1e\n"
            "Hessians against differences of gradients: %.1e\n", 1e6 * shortest,
            1e6 * total / PERIODS, slope, error);
    return !(slope < 1e-8 && error < 1e-5);
}
